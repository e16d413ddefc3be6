package config

import (
	"regexp"
	"strings"
)

// hidden stands for what an address says before its host.
const hidden = "***"

// HideUserInfo blanks what an address says before its host: it can be a password or a token. Of several addresses in
// one value only the last host stays. Paths of files are left alone.
func HideUserInfo(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 || address[0] == '/' || address[0] == '.' || address[0] == '~' {
		return address
	}
	scheme := strings.Index(address, "://")
	if scheme < 0 || scheme > at {
		return hidden + address[at:]
	}
	return address[:scheme+len("://")] + hidden + address[at:]
}

var addressIn = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)(?:\\"|[^\s"])*@`)

// HideUserInfoIn blanks in a text what addresses with a scheme say before their hosts.
func HideUserInfoIn(text string) string { return addressIn.ReplaceAllString(text, "${1}"+hidden+"@") }

var quoted = regexp.MustCompile(`"(?:\\.|[^"\\])*"`)

// hideQuoted blanks in a text that quotes values what these say before hosts, where they have no scheme too.
func hideQuoted(text string) string {
	text = quoted.ReplaceAllStringFunc(text, func(q string) string { return `"` + HideUserInfo(q[1:len(q)-1]) + `"` })
	return HideUserInfoIn(text)
}
