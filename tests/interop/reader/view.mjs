// What is shown under one key, and to whom; cards and timelines (FORMAT.md 5, 5.1, 5.2, 1.4).

import { byCodePoints, canonical, compare, fields, fromUtf8, hex, isHex, need, parseCanonical, sha256, unlessRefused } from './bytes.mjs'
import { merge3 } from './files.mjs'
import { label } from './ring.mjs'
import { isToken, readDot } from './state.mjs'

const short = hash => hash.slice(0, 32)
const clockOrder = one => [one.h, one.dev, one.n]

/** Dots of one body each: [{body, h, dev, n, values}], the greatest first; forgotten ones have the body "". */
function siblings(entry) {
  const groups = new Map()
  for (const [text, value] of Object.entries(entry)) {
    const one = { ...value, ...readDot(text), body: value.body ?? '' }
    groups.set(one.body, [...(groups.get(one.body) ?? []), one])
  }
  const all = [...groups.values()].map(values => {
    values.sort((a, b) => -compare(clockOrder(a), clockOrder(b)))
    return { ...values[0], values }
  })
  return all.sort((a, b) => -compare([a.h, a.dev, a.body], [b.h, b.dev, b.body]))
}

const dotsOf = all => all.flatMap(one => one.values.map(value => value.text))

/**
 * The view of one key. `fetch(body)` gives bytes with that SHA-256, or null; `fetchBase(value)` those at its base.
 * -> {shown: bytes|null, merged, forgotten, dots, conflicts: [{file, body, dots}], hidden: [...], notFetched: [dot]}
 */
export function view(key, entry, fetch, fetchBase = () => null) {
  const all = siblings(entry)
  const out = { shown: null, merged: false, forgotten: false, dots: [], conflicts: [], hidden: [], notFetched: [] }
  if (all.length === 0) return out
  const copies = list => {
    const files = new Set()
    return list.map(one => {
      const name = `${key}.conflict-${one.body.slice(0, 8)}.md`
      const file = files.has(name) ? null : name
      files.add(name)
      return { file, body: one.body, dots: one.values.map(value => value.text) }
    })
  }
  const forgotten = all.filter(one => one.body === '')
  if (forgotten.length) {
    return { ...out, forgotten: true, dots: dotsOf(forgotten), hidden: copies(all.filter(one => one.body !== '')) }
  }
  const texts = all.map(one => fetch(one.body))
  out.notFetched = all.filter((_, i) => texts[i] === null).map(one => one.text)
  const merged = all.length > 1 && out.notFetched.length === 0 ? mergeAll(all, texts, fetchBase) : null
  if (merged) return { ...out, shown: merged, merged: true, dots: dotsOf(all) }
  return { ...out, shown: texts[0], dots: texts[0] === null ? [] : dotsOf(all.slice(0, 1)), conflicts: copies(all.slice(1)) }
}

function mergeAll(all, texts, fetchBase) {
  const lists = all.map(one => [...new Set([short(one.body), ...one.values.flatMap(value => value.b)])])
  const within = hash => all.some(one => short(one.body) === hash || one.values.some(value => value.b[0] === hash))
  const base = lists[0].find(hash => lists.every(list => list.includes(hash)) && within(hash))
  if (base === undefined) return null
  let old = texts[all.findIndex(one => short(one.body) === base)] ?? null
  for (const value of all.flatMap(one => one.values)) if (old === null && value.b[0] === base) old = ofHash(fetchBase(value), base)
  if (old === null) return null
  return texts.reduceRight((done, text) => done && merge3(old, done, text))
}

const ofHash = (data, short) => (data !== null && hex(sha256(data)).startsWith(short) ? data : null)

/** What a reader is shown to whom only `isOwn` values count, and what others wrote beside it. */
export function ownView(key, entry, isOwn, fetch, fetchBase) {
  const split = own => Object.fromEntries(Object.entries(entry).filter(([dot, value]) => isOwn(dot, value) === own))
  const own = view(key, split(true), fetch, fetchBase)
  const bodies = new Set(Object.values(split(true)).map(value => value.body))
  const foreign = siblings(split(false)).filter(one => !bodies.has(one.body))
  const alike = siblings(split(false)).filter(one => one.body !== '' && own.dots.some(dot => entry[dot].body === one.body))
  own.dots.push(...dotsOf(alike))
  const live = foreign.filter(one => one.body !== '')
  return {
    ...own,
    others: live.map(one => ({ file: `${key}.conflict-${one.body.slice(0, 8)}.md`, body: one.body, dots: one.values.map(value => value.text) })),
    unheeded: dotsOf(foreign.filter(one => one.body === ''))
  }
}

// --- cards ---

function parseCard(data) {
  need(data.length <= 4096, 'limit')
  const card = fields(parseCanonical(data), ['ids', 'into', 'kind', 'title', 'v'])
  need(card.v === 1 && ['user', 'workspace', 'agent'].includes(card.kind), 'format', 'not a card')
  label(card.title)
  need(card.into === null || (typeof card.into === 'string' && isToken(card.into)), 'format', 'leads to no scope')
  need(Array.isArray(card.ids) && card.ids.length <= 64, 'format', 'not a list of ids')
  card.ids.forEach((one, i) => {
    need(isId(one), 'format', 'not an id of a project')
    need(i === 0 || compareLists(card.ids[i - 1], one) < 0, 'format', 'ids out of order')
  })
  return card
}

function isId(one) {
  if (!Array.isArray(one)) return false
  if (one[0] === 'id') return one.length === 2 && isHex(one[1], 16)
  if (one[0] !== 'remote' || one.length !== 3 || typeof one[1] !== 'string' || typeof one[2] !== 'string') return false
  const [host, ...path] = one[1].split('/')
  const isRemote = one[1] === one[1].toLowerCase() && host.includes('.') && path.length > 0 && !path.includes('') && !/[@:?#\s]|\.git$/.test(one[1])
  return isRemote && (one[2] === '' || one[2].split('/').every(part => !['', '.', '..'].includes(part)))
}

function compareLists(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return byCodePoints(a[i], b[i])
  return a.length - b.length
}

/** The card of a scope, of all siblings together: {card: {...}|null, forgotten}. */
export function cardOf(entry, fetch) {
  const all = siblings(entry)
  const cards = all
    .filter(one => one.body !== '')
    .map(one => {
      const data = fetch(one.body)
      return data && unlessRefused(() => parseCard(data))
    })
    .filter(Boolean)
  const forgotten = all.some(one => one.body === '')
  if (forgotten || cards.length === 0) return { card: null, forgotten }
  const ids = new Map(cards.flatMap(card => card.ids).map(one => [canonical(one), one]))
  return { card: { ...cards[0], ids: [...ids.values()].sort(compareLists) }, forgotten }
}

// --- timeline ---

const TS =
  /^(\d{4}-\d\d-\d\d)(?:[Tt ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?(Z|z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$/

/** Milliseconds since 1970 of a `ts`, or null. */
export function instant(ts) {
  const parts = TS.exec(ts)
  if (!parts || ts.startsWith('0000')) return null
  const [, day, hour = '00', minute = '00', second = '00', fraction = '', zone = 'Z'] = parts
  const clock = `${day}T${hour}:${minute}:${second}.${fraction.padEnd(3, '0').slice(0, 3)}`
  const local = Date.parse(`${clock}Z`)
  if (Number.isNaN(local) || !new Date(local).toISOString().startsWith(day)) return null
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? [0, '+', 0, 0]
  const at = local - (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60000
  return at < Date.parse('0001-01-01T00:00:00Z') || at > Date.parse('9999-12-31T23:59:59.999Z') ? null : at
}

/** The one line of an event. */
export const lineOf = event => {
  const { ts, type, id, ...rest } = event
  const names = Object.keys(rest).sort()
  return `{${[['ts', ts], ['type', type], ['id', id], ...names.map(name => [name, rest[name]])].map(([name, value]) => `${JSON.stringify(name)}:${canonical(value)}`).join(',')}}`
}

export function foreignId(event) {
  const { id, ...rest } = event
  return hex(sha256(canonical(rest))).slice(0, 16)
}

const NO_TIME = '1970-01-01T00:00:00.000Z'

/** Whether a name stands twice in an object of this JSON text. */
function repeats(text) {
  const open = []
  let string = null
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g)) {
    if (token === '{' || token === '[') open.push(token === '{' ? new Set() : null)
    else if (token === '}' || token === ']') open.pop()
    else if (token[0] === '"') string = token
    else if (token === ':') {
      const name = JSON.parse(string)
      if (open.at(-1).has(name)) return true
      open.at(-1).add(name)
    }
  }
  return false
}

/** Whether all of a value has one form in every language. */
function isSound(value, depth = 1) {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value === 'number') return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
  if (value === null || typeof value !== 'object') return true
  return depth <= 32 && Object.entries(value).every(([name, inner]) => name.isWellFormed() && isSound(inner, depth + 1))
}

/** One line as an event, which has an id; what is none becomes a `raw` one. */
export function parseLine(line, day) {
  const text = unlessRefused(() => fromUtf8(line))
  let event = null
  try {
    event = JSON.parse(text)
  } catch {}
  const isObject = event !== null && typeof event === 'object' && !Array.isArray(event)
  const timed = isObject && typeof event.ts === 'string' && instant(event.ts) !== null
  const named = isObject && (!Object.hasOwn(event, 'id') || (typeof event.id === 'string' && event.id !== ''))
  if (timed && named && typeof event.type === 'string' && isSound(event) && !repeats(text)) {
    return Object.hasOwn(event, 'id') ? event : { ...event, id: foreignId(event) }
  }
  const raw = text === null ? { raw: line.toString('base64url'), encoding: 'base64url' } : { raw: text }
  const made = { ts: timed ? event.ts : day ? `${day}T00:00:00.000Z` : NO_TIME, type: 'raw', ...raw }
  return { ...made, id: foreignId(made) }
}

/** The events of a segment or file; blank lines are skipped. */
function parseLines(data, day) {
  const lines = data.toString('latin1').replace(/^\xef\xbb\xbf/, '').split('\n')
  return lines.map(line => line.replace(/^[ \t\r]+|[ \t\r]+$/g, '')).filter(Boolean).map(line => parseLine(Buffer.from(line, 'latin1'), day))
}

/** Lists of events as one: of several with one id the least line keeps it, the others get foreign ids. */
export function union(lists) {
  const found = new Map()
  const others = []
  for (const event of lists.flat()) {
    const one = event.id === undefined ? { ...event, id: foreignId(event) } : event
    const held = found.get(one.id)
    if (held === undefined) found.set(one.id, one)
    else if (lineOf(held) !== lineOf(one)) {
      const [low, high] = [held, one].sort((a, b) => Buffer.compare(Buffer.from(lineOf(a)), Buffer.from(lineOf(b))))
      found.set(one.id, low)
      others.push(high)
    }
  }
  for (const event of others) {
    const one = { ...event, id: foreignId(event) }
    if (!found.has(one.id)) found.set(one.id, one)
  }
  return [...found.values()].sort((a, b) => compare([instant(a.ts), a.id], [instant(b.ts), b.id])).map(lineOf)
}

/** Whether a line can be an event's, under its id or a foreign one. */
const fits = event => [event.id, foreignId(event)].every(id => Buffer.byteLength(lineOf({ ...event, id })) <= 65536)

/** Events of segments [{dev, data}] in their order; an own id counts only in a segment of its device. */
export function timeline(segments) {
  return union(
    segments.map(({ dev, data }) =>
      parseLines(data).filter(fits).map(event => {
        const [, claimed, n] = /^([0-9a-f]{16})-([1-9][0-9]*)$/.exec(event.id) ?? []
        return claimed && claimed !== dev && Number.isSafeInteger(Number(n)) ? { ...event, id: foreignId(event) } : event
      })
    )
  )
}
