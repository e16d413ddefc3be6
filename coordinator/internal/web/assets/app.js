// The page's program. What the rack says is put into the page as text only (see el); nothing is ever parsed as markup.

const page = document.getElementById('page');
const state = document.getElementById('state');
const sessionButton = document.getElementById('session');

// el makes an element: attributes, on<event> handlers, and children that are elements or texts.
function el(tag, attributes = {}, ...children) {
  const node = document.createElementNS(
    ['svg', 'rect', 'title'].includes(tag) ? 'http://www.w3.org/2000/svg' : 'http://www.w3.org/1999/xhtml', tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((c) => c !== undefined && c !== null && c !== ''));
  return node;
}

// Numbers with their units.
const factors = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
// amount reads what the rack writes, the exact number of the largest unit that divides it: "44GiB".
function amount(text) {
  const m = /^(\d+)(B|KiB|MiB|GiB|TiB)$/.exec(text ?? '');
  return m ? Number(m[1]) * factors[m[2]] : 0;
}

function bytes(n) {
  if (typeof n === 'string') n = amount(n);
  if (!n) return '0';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const i = Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  const value = n / 2 ** (10 * i);
  return `${i === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[i]}`;
}

function duration(ms) {
  if (!Number.isFinite(ms)) return '';
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${(s / 3600).toFixed(1)} h`;
  return `${Math.round(s / 86400)} d`;
}

const at = (text) => Date.parse(text);
const since = (text) => (text ? duration(Date.now() - at(text)) : '');
const when = (text) => (text ? new Date(text).toISOString().replace('T', ' ').slice(0, 19) + ' UTC' : '');
const jobLink = (tenant, id) => el('a', { href: `#/job/${encodeURIComponent(tenant)}/${id}`, title: id }, `${id.slice(0, 8)}…${id.slice(-4)}`);

function table(head, rows, empty) {
  if (!rows.length) return el('p', { class: 'soft' }, empty);
  return el('div', { class: 'scroll' }, el('table', {},
    el('thead', {}, el('tr', {}, head.map((h) => el('th', { class: h.num ? 'num' : undefined, scope: 'col' }, h.text ?? h)))),
    el('tbody', {}, rows.map((cells) => el('tr', {}, cells.map((c, i) => el('td', { class: head[i].num ? 'num' : undefined }, c)))))));
}

function facts(pairs) {
  return el('dl', { class: 'facts' }, pairs.filter(([, v]) => v !== undefined && v !== '' && v !== null)
    .map(([k, v]) => el('div', {}, el('dt', {}, k), el('dd', {}, v))));
}

function faultText(f) { return f ? `${f.message}${f.hint ? ` (${f.hint})` : ''}` : ''; }
function notice(text, bad) { return el('p', { class: `notice${bad ? ' bad' : ''}` }, text); }
const stateChip = (s) => el('span', { class: `chip ${{ done: 'good', failed: 'bad', active: 'busy' }[s] ?? ''}` }, s);

// Requests. The token is kept for this tab alone.
async function request(path, options = {}) {
  const token = sessionStorage.getItem('token');
  const answer = await fetch(path, { ...options, headers: token ? { Authorization: `Bearer ${token}` } : {} });
  const body = await answer.json();
  if (!answer.ok) throw new Error(faultText(body));
  return body;
}

let writes = false;
async function session() {
  const s = await request('/api/session');
  writes = s.write;
  sessionButton.hidden = !s.possible;
  sessionButton.textContent = s.write ? 'May change things' : 'Read-only';
}
sessionButton.addEventListener('click', () => {
  const field = el('input', { type: 'password', autocomplete: 'off', 'aria-label': 'token' });
  const dialog = el('dialog', {}, el('form', { method: 'dialog', onsubmit: async () => {
    sessionStorage.setItem('token', field.value.trim());
    await session();
    route();
  } }, el('p', {}, 'The token of this page lets you cancel jobs and replay dead letters from this tab.'), field,
  el('button', {}, 'Use it')));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
});

async function change(question, path) {
  if (!window.confirm(question)) return;
  try {
    await request(path, { method: 'POST' });
  } catch (e) {
    window.alert(e.message);
  }
  route();
}

// The overview.
function nodeCard(n) {
  const pools = Object.keys(n.capacity ?? {}).sort();
  return el('section', { class: 'card', 'data-node': n.node },
    el('div', { class: 'head' }, el('span', {}, n.node),
      el('span', { class: `chip ${n.ready ? 'good' : 'bad'}` }, n.draining ? 'draining' : n.cordoned ? 'cordoned' : n.ready ? 'ready' : 'not ready')),
    n.reason ? el('div', { class: 'soft' }, n.reason) : '',
    pools.map((p) => {
      const have = amount(n.capacity[p]), used = amount(n.reserved?.[p]);
      return el('div', { class: 'pool' }, el('span', { class: 'soft' }, p),
        el('meter', { min: 0, max: Math.max(have, 1), value: Math.min(used, have), high: have * 0.95, 'aria-label': `${p} booked` }),
        el('span', { class: 'num' }, `${bytes(used)} of ${bytes(have)}`));
    }),
    el('div', { class: 'legend' }, `${n.running} running`, el('span', {}, `${n.synth_slots} synth slots`),
      (n.devices ?? []).map((d) => el('span', { class: `chip ${d.quarantined || !d.healthy ? 'bad' : 'good'}`, title: d.reason ?? d.name ?? '' },
        `${d.device}${d.quarantined ? ' quarantined' : d.healthy ? '' : ' unhealthy'}`))));
}

function jobRow(j) {
  const share = j.partitions ? Math.round((100 * j.verified) / j.partitions) : 0;
  const end = j.ended_at ? at(j.ended_at) : Date.now();
  const fill = el('i', {});
  fill.style.width = `${share}%`;
  return [jobLink(j.tenant, j.job_id), j.tenant, j.key ?? '', j.circuit, `${j.miner} / ${j.sector_number}`, stateChip(j.state),
    el('div', { class: 'bar', role: 'img', 'aria-label': `${j.verified} of ${j.partitions} verified` }, fill),
    `${j.verified} / ${j.partitions}`, j.waiting ? String(j.waiting) : '', duration(end - at(j.submitted_at)), faultText(j.fault)];
}

const jobsHead = ['job', 'tenant', 'key', 'circuit', 'miner / sector', 'state', 'partitions', { text: 'verified', num: true },
  { text: 'waiting', num: true }, { text: 'for', num: true }, 'fault'];

function showRack(d) {
  const r = d.rack;
  const held = {};
  for (const n of d.flight ?? []) for (const report of n.reports ?? []) for (const b of report.classes ?? []) {
    const c = (held[b.class] ??= { pieces: 0, bytes: 0, high: 0 });
    c.high += amount(b.high_bytes);
    for (const s of b.live ?? []) { c.pieces += s.pieces; c.bytes += amount(s.bytes); }
  }
  return [
    d.away ? notice(`The leader does not answer: ${faultText(d.away)}`, true) : '',
    r && !r.ready ? notice(`The rack is not ready: ${r.reason}`, true) : '',
    r?.paused ? notice('Intake is paused: new jobs are refused.') : '',
    facts([
      ['nodes', r ? `${r.nodes.filter((n) => n.ready).length} of ${r.nodes.length} ready` : ''],
      ['partitions waiting', r ? String(r.waiting) : ''],
      ...Object.entries(d.counts).map(([s, n]) => [s, `${n}${d.more ? '+' : ''}`]),
      ['leader', r ? `${r.leader?.slice(0, 8)} (term ${r.term})` : ''],
    ]),
    el('h1', {}, 'Nodes'),
    r?.nodes.length ? el('div', { class: 'nodes' }, r.nodes.map(nodeCard)) : el('p', { class: 'soft' }, 'No node has been seen yet.'),
    el('h2', {}, 'Jobs'),
    table(jobsHead, d.jobs.map(jobRow), 'No jobs yet. Submit one with: proofrack submit'),
    d.more && d.jobs.length ? el('p', {}, el('a', { href: `#/jobs/${d.jobs.at(-1).job_id}` }, 'older jobs')) : '',
    Object.keys(held).length ? [el('h2', {}, 'Buffers'),
      table(['class', { text: 'pieces', num: true }, { text: 'bytes', num: true }, { text: 'most so far', num: true }],
        Object.entries(held).sort().map(([c, v]) => [c, String(v.pieces), bytes(v.bytes), bytes(v.high)]), '')] : '',
  ];
}

// A job.
const stages = ['waiting', 'reserved', 'synthesizing', 'sealed', 'proving', 'proved', 'verified', 'failed', 'cancelled'];

function timeLine(r, p, from, to) {
  const width = 1000, scale = width / Math.max(1, to - from);
  const line = el('svg', { class: 'line', viewBox: `0 0 ${width} 14`, preserveAspectRatio: 'none' });
  for (const a of p.attempts ?? []) {
    const start = at(a.started_at), end = a.ended_at ? at(a.ended_at) : to;
    const box = el('rect', { class: a.outcome ?? 'now', x: (start - from) * scale, y: 1, height: 12, width: Math.max(2, (end - start) * scale) },
      el('title', {}, `fence ${a.fence} on ${a.node} ${a.device}: ${a.outcome ?? 'running'}, ${duration(end - start)}`));
    line.append(box);
  }
  return line;
}

function stageSeconds(a) {
  return Object.entries(a?.seconds ?? {}).sort().map(([k, v]) => `${k} ${v < 10 ? v.toFixed(2) : v.toFixed(0)} s`).join(', ');
}

function showJob(d) {
  const r = d.record;
  const base = `/api/jobs/${encodeURIComponent(r.tenant)}/${r.id}`;
  const from = at(r.submitted_at), to = r.ended_at ? at(r.ended_at) : Date.now();
  const verified = r.partitions.filter((p) => p.stage === 'verified').length;
  return [
    el('h1', {}, 'Job ', el('code', {}, r.id)),
    r.fault ? notice(faultText(r.fault), true) : '',
    d.away ? notice(`The leader does not answer: ${faultText(d.away)}`, true) : '',
    facts([['state', stateChip(r.state)], ['partitions', `${verified} of ${r.partitions.length} verified`], ['tenant', r.tenant], ['key', r.key],
      ['circuit', r.circuit], ['miner', r.miner], ['sector', String(r.sector_number)], ['priority', r.priority ? String(r.priority) : ''],
      ['deadline', when(r.deadline)], ['submitted', when(r.submitted_at)], [r.ended_at ? 'took' : 'for', duration(to - from)]]),
    el('div', { class: 'actions' },
      r.state === 'done' ? [['proof', ''], ['hex', '?format=hex'], ['base64', '?format=base64']].map(([t, q]) =>
        el('a', { class: 'button', href: `${base}/proof${q}`, download: true, 'data-proof': t }, t === 'proof' ? 'Download proof' : t)) : '',
      d.trace_url ? el('a', { class: 'button', href: d.trace_url, target: '_blank', rel: 'noreferrer' }, 'Trace') : '',
      writes && r.state === 'active' ? el('button', { onclick: () => change(`Cancel job ${r.id}?`, `${base}/cancel`) }, 'Cancel job') : '',
      writes && r.state === 'failed' ? el('button', { onclick: () => change(`Try job ${r.id} again?`, `/api/letters/${r.id}/replay`) }, 'Replay') : ''),
    el('div', { class: 'cells', id: 'cells' }, r.partitions.map((p, i) =>
      el('div', { class: `cell ${p.stage}`, title: `${i}: ${p.stage}`, 'data-stage': p.stage }))),
    el('div', { class: 'legend' }, stages.filter((s) => r.partitions.some((p) => p.stage === s)).map((s) =>
      el('span', {}, el('i', { class: `cell ${s}` }), s))),
    d.why?.length ? [el('h2', {}, 'Why it waits'), table(['partitions', 'reason', 'node', 'pool', { text: 'missing', num: true }, 'held by'],
      d.why.map((w) => [ranges(w.partitions), w.text, w.node ?? '', w.pool ?? '', w.missing ? bytes(w.missing) : '',
        (w.holders ?? []).map((h) => `${h.name} ${bytes(h.bytes)}`).join(', ')]), '')] : '',
    el('h2', {}, 'Partitions'),
    table([{ text: '#', num: true }, 'stage', 'node', 'device', { text: 'since', num: true }, 'attempts', { text: 'booked', num: true }, 'stages'],
      r.partitions.map((p, i) => {
        const held = d.held?.[`${r.id}.${i}.${p.fence}`];
        return [String(i), p.stage, p.node ?? '', p.device ?? '', r.ended_at ? '' : since(p.stage_at), timeLine(r, p, from, to),
          held ? Object.entries(held).map(([k, v]) => `${k} ${bytes(v)}`).join(', ') : '', stageSeconds(p.attempts?.at(-1))];
      }), ''),
    el('h2', {}, 'What it was made from'),
    facts([['input', el('code', {}, r.input_hash)], ['parameters', r.params_digest ? el('code', {}, r.params_digest) : ''],
      ['proof', r.result ? el('code', {}, r.result.sha256) : '']]),
  ];
}

function ranges(list) {
  const out = [];
  for (const n of list ?? []) {
    const last = out.at(-1);
    if (last && last[1] === n - 1) last[1] = n; else out.push([n, n]);
  }
  return out.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(', ');
}

// Lists.
const next = (href, text) => (href ? el('p', {}, el('a', { href }, text)) : '');

async function showOlder(before) {
  const d = await request(`/api/jobs?before=${encodeURIComponent(before)}`);
  return [el('h1', {}, 'Older jobs'), table(jobsHead, d.jobs.map(jobRow), 'There are no older ones.'),
    next(d.more && d.jobs.length ? `#/jobs/${d.jobs.at(-1).job_id}` : '', 'older jobs')];
}

async function showLetters(after) {
  const d = await request(`/api/letters${after ? `?after=${encodeURIComponent(after)}` : ''}`);
  return [el('h1', {}, 'Dead letters'), table(['job', 'tenant', 'circuit', 'ended', 'fault', ''], d.letters.map((l) =>
    [jobLink(l.tenant, l.job_id), l.tenant, l.circuit, when(l.at), faultText(l.fault),
      writes ? el('button', { onclick: () => change(`Try job ${l.job_id} again?`, `/api/letters/${l.job_id}/replay`) }, 'Replay') : '']),
  'No job failed for good.'),
  next(d.more && d.letters.length ? `#/letters/${d.letters.at(-1).job_id}` : '', 'older ones'),
  d.messages?.length ? [el('h2', {}, 'Messages that were no tasks'), table(['at', 'subject', 'reason', { text: 'bytes', num: true }],
    d.messages.map((m) => [when(m.at), m.subject, m.reason, String(m.bytes)]), '')] : ''];
}

async function showAssets() {
  const d = await request('/api/assets');
  return [el('h1', {}, 'Assets'), (d.nodes ?? []).map((n) => [el('h2', {}, n.node),
    table(['asset', 'pool', 'class', { text: 'bytes', num: true }, { text: 'users', num: true }, 'last used', ''],
      (n.assets ?? []).map((a) => [a.name, a.pool, a.class, bytes(a.bytes), String(a.users),
        a.users ? 'now' : since(a.used_at), a.present ? '' : 'not there yet']), 'Nothing is loaded.'),
    table(['device', 'circuit', 'state', 'parameters'], (n.circuits ?? []).map((c) => [c.device, c.circuit,
      c.ready ? 'ready' : c.loading ? `${c.loading.what}: ${bytes(c.loading.done_bytes)} of ${bytes(c.loading.total_bytes)}` : c.missing ?? '',
      el('code', {}, c.digest ?? '')]), '')])];
}

async function showAudit(after) {
  const d = await request(`/api/audit${after ? `?after=${encodeURIComponent(after)}` : ''}`);
  return [el('h1', {}, 'Audit records'), el('p', { class: 'soft' }, 'Oldest first. All of them: proofrack audit --all'),
    table(['job', 'tenant', 'miner / sector', 'circuit', 'ended', { text: 'attempts', num: true }, 'made by', 'input', 'parameters', 'proof'],
      d.records.map((a) => [jobLink(a.tenant, a.job_id), a.tenant, `${a.miner} / ${a.sector_number}`, a.circuit, when(a.ended_at), String(a.attempt_count),
        [...new Set((a.attempts ?? []).map((t) => `${t.node} ${t.device}`))].join(', '),
        ...[a.input_hash, a.params_digest, a.proof_sha256].map((x) => el('code', { title: x }, (x ?? '').slice(0, 12)))]), 'No proof has been delivered yet.'),
    next(d.more ? `#/audit/${d.next}` : '', 'later ones')];
}

// Which page is shown follows the address. A page that changes is a stream of events.
let source;
function live(path, show) {
  source = new EventSource(path);
  source.addEventListener('page', (e) => {
    const focus = document.activeElement?.getAttribute?.('href');
    page.replaceChildren(...show(JSON.parse(e.data)).flat(9).filter(Boolean));
    if (focus) page.querySelector(`[href="${CSS.escape(focus)}"]`)?.focus();
    say(`as of ${new Date().toISOString().slice(11, 19)} UTC`);
  });
  source.addEventListener('away', (e) => say(faultText(JSON.parse(e.data)), true));
  source.addEventListener('error', () => say('the coordinator does not answer', true));
}

function say(text, bad) {
  state.textContent = text;
  state.className = bad ? 'bad' : '';
}

async function route() {
  source?.close();
  source = undefined;
  const [, what = '', a, b] = location.hash.split('/').map(decodeURIComponent);
  for (const link of document.querySelectorAll('nav a')) {
    link.toggleAttribute('aria-current', link.getAttribute('href') === (what ? `#/${what}` : '#/'));
  }
  const once = { jobs: () => showOlder(a), letters: () => showLetters(a), assets: showAssets, audit: () => showAudit(a) }[what];
  try {
    if (once) {
      page.replaceChildren(...(await once()).flat(9).filter(Boolean));
      say(`as of ${new Date().toISOString().slice(11, 19)} UTC`);
    } else if (what === 'job') live(`/events/jobs/${encodeURIComponent(a)}/${encodeURIComponent(b)}`, showJob);
    else live('/events/rack', showRack);
  } catch (e) {
    page.replaceChildren(notice(e.message, true));
  }
}

window.addEventListener('hashchange', route);
await session().catch(() => {});
route();
