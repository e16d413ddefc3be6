package support

import "regexp"

// hidden stands for what was taken out.
const hidden = "[hidden]"

// secrets are what is taken out of texts: the pattern, and what stands there afterwards.
func secrets() []struct {
	what *regexp.Regexp
	by   string
} {
	return []struct {
		what *regexp.Regexp
		by   string
	}{
		{regexp.MustCompile(`(?s)-----BEGIN ([A-Z0-9 ]*(?:PRIVATE KEY|SEED|JWT))-----.*?(?:------?END [A-Z0-9 ]*-----?-?|$)`),
			"-----$1 " + hidden + "-----"},
		{regexp.MustCompile(`\bS[UAOCNX][A-Z2-7]{56}\b`), hidden},                                       // seeds of NATS
		{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`), hidden}, // tokens
		{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'@]+@`), "${1}" + hidden + "@"},
		{regexp.MustCompile(`(?i)("?[a-z_.-]*(?:password|passwd|secret|token)"?\s*[:=]\s*"?)[^\s",}]+`), "${1}" + hidden},
		{regexp.MustCompile(`(?i)((?:authorization: *)?bearer +)[A-Za-z0-9._~+/=-]+`), "${1}" + hidden},
	}
}

// Scrub takes what looks like a secret out of a text.
func Scrub(text string) string {
	for _, s := range secrets() {
		text = s.what.ReplaceAllString(text, s.by)
	}
	return text
}
