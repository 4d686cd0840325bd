/** Events of a timeline: their one-line form, lenient parsing of any line, and unions (FORMAT.md 1.4). */

import {
  base64url,
  type Bytes,
  byteLength,
  canonical,
  compare,
  compareBytes,
  fromUtf8,
  hex,
  isObject,
  type Json,
  need,
  sha256,
  unlessRefused,
  utf8
} from './bytes.ts'
import { MOST_LINE } from './limits.ts'

export type TimelineEvent = { readonly ts: string; readonly type: string; readonly id: string; readonly [name: string]: Json }
type Unnamed = { readonly ts: string; readonly type: string; readonly id?: string; readonly [name: string]: Json | undefined }

const TS = /^(\d{4}-\d\d-\d\d)(?:[Tt ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?(Z|z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$(?![^])/
const NO_TIME = '1970-01-01T00:00:00.000Z'
const FIRST = Date.parse('0001-01-01T00:00:00Z')
const LAST = Date.parse('9999-12-31T23:59:59.999Z')
const MOST_DEPTH = 32

/** Milliseconds since 1970 of a `ts`, or null if invalid. */
export function instant(ts: string): number | null {
  const parts = TS.exec(ts)
  if (parts === null || ts.startsWith('0000')) return null
  const [, day = '', hour = '00', minute = '00', second = '00', fraction = '', zone = 'Z'] = parts
  const local = Date.parse(`${day}T${hour}:${minute}:${second}.${fraction.padEnd(3, '0').slice(0, 3)}Z`)
  if (Number.isNaN(local) || !new Date(local).toISOString().startsWith(day)) return null
  const [, sign = '+', hours = '0', minutes = '0'] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? []
  const at = local - (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
  return at < FIRST || at > LAST ? null : at
}

/** The canonical spelling of a `ts`, or null. */
export function normalTs(ts: string): string | null {
  const at = instant(ts)
  return at === null ? null : new Date(at).toISOString()
}

/** The line of an event, without its LF. */
export function lineOf(event: Unnamed): string {
  const { ts, type, id, ...rest } = event
  const names = Object.keys(rest).sort()
  const pairs: [string, unknown][] = [['ts', ts], ['type', type], ['id', id], ...names.map((name): [string, unknown] => [name, rest[name]])]
  return `{${pairs.map(([name, value]) => `${JSON.stringify(name)}:${canonical(value)}`).join(',')}}`
}

/** The id of an event without an id of a device of this vault: from its text alone. */
export function foreignId(event: Unnamed): string {
  const { id: _, ...rest } = event
  return hex(sha256(canonical(rest))).slice(0, 16)
}

const asForeign = (event: Unnamed): TimelineEvent => ({ ...event, id: foreignId(event) }) as TimelineEvent

/** Return the device in an own id, and its number of the event; null for ids of another form. */
export function splitOwnId(id: string): { device: string; n: number } | null {
  const [, device, digits] = /^([0-9a-f]{16})-([1-9][0-9]*)$(?![^])/.exec(id) ?? []
  const n = Number(digits)
  return device !== undefined && Number.isSafeInteger(n) ? { device, n } : null
}

/** Tell whether a name is repeated in an object of this well-formed JSON text. */
export function hasRepeatedName(text: string): boolean {
  const open: (Set<string> | null)[] = []
  let string = ''
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g)) {
    if (token === '{' || token === '[') open.push(token === '{' ? new Set() : null)
    else if (token === '}' || token === ']') open.pop()
    else if (token.startsWith('"')) string = token
    else if (token === ':') {
      const name = JSON.parse(string) as string
      const names = open.at(-1)
      if (names?.has(name)) return true
      names?.add(name)
    }
  }
  return false
}

/** Tell whether all of a value has one form in every language. */
function isSound(value: unknown, depth = 1): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value === 'number') return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
  if (value === null || typeof value !== 'object') return true
  return depth <= MOST_DEPTH && Object.entries(value).every(([name, inner]) => name.isWellFormed() && isSound(inner, depth + 1))
}

/** Tell whether a value is an event that can be written; it may lack an id. */
export function isEvent(value: unknown): value is Unnamed {
  if (!isObject(value) || typeof value.ts !== 'string' || instant(value.ts) === null || typeof value.type !== 'string') return false
  const hasId = Object.hasOwn(value, 'id')
  return (!hasId || (typeof value.id === 'string' && value.id !== '')) && isSound(value)
}

/** Parse a line as an event; any other line becomes one of type `raw`. `day`: of its plain file. */
export function parseLine(line: Bytes, day: string | null = null): TimelineEvent {
  const text = unlessRefused(() => fromUtf8(line))
  let value: unknown = null
  try {
    value = text === null ? null : JSON.parse(text)
  } catch {
    // not JSON: raw
  }
  if (text !== null && isEvent(value) && !hasRepeatedName(text)) return value.id === undefined ? asForeign(value) : (value as TimelineEvent)
  const timed = isObject(value) && typeof value.ts === 'string' && instant(value.ts) !== null
  const ts = timed ? ((value as Record<string, unknown>).ts as string) : day === null ? NO_TIME : `${day}T00:00:00.000Z`
  const raw: Record<string, string> = text === null ? { raw: base64url(line), encoding: 'base64url' } : { raw: text }
  return asForeign({ ts, type: 'raw', ...raw })
}

/** The lines of a segment or file, trimmed at the end, without blank ones. */
function linesOf(data: Bytes): Bytes[] {
  const out: Bytes[] = []
  const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0d
  let start = data[0] === 0xef && data[1] === 0xbb && data[2] === 0xbf ? 3 : 0
  for (let end = start; end <= data.length; end++) {
    if (end < data.length && data[end] !== 0x0a) continue
    let [from, to] = [start, end]
    while (from < to && isSpace(data[from])) from++
    while (to > from && isSpace(data[to - 1])) to--
    if (to > from) out.push(data.subarray(from, to))
    start = end + 1
  }
  return out
}

export const parseLines = (data: Bytes, day: string | null = null): TimelineEvent[] => linesOf(data).map(line => parseLine(line, day))

const order = (event: TimelineEvent): [number, string] => [instant(event.ts) ?? 0, event.id]

/** Merge lists of events: of several with one id the least line keeps it, the others get foreign ids. */
export function union(lists: readonly (readonly Unnamed[])[]): TimelineEvent[] {
  const found = new Map<string, TimelineEvent>()
  const others: TimelineEvent[] = []
  for (const event of lists.flat()) {
    need(isEvent(event), 'format', 'not an event of a timeline')
    const one = event.id === undefined ? asForeign(event) : (event as TimelineEvent)
    const held = found.get(one.id)
    if (held === undefined) found.set(one.id, one)
    else if (lineOf(held) !== lineOf(one)) {
      const isLow = compareBytes(utf8(lineOf(held)), utf8(lineOf(one))) < 0
      found.set(one.id, isLow ? held : one)
      others.push(isLow ? one : held)
    }
  }
  for (const event of others.map(asForeign)) if (!found.has(event.id)) found.set(event.id, event)
  return [...found.values()].sort((a, b) => compare(order(a), order(b)))
}

/** Merge the events of several scopes: equal id and line once, since an id is valid only inside its scope. */
export function unionOfScopes(sources: readonly (readonly TimelineEvent[])[]): TimelineEvent[] {
  const found = new Map(sources.flat().map(event => [`${event.id}\n${lineOf(event)}`, event]))
  return [...found.values()].sort((a, b) => compare(order(a), order(b)))
}

/** Tell whether an event only reports which memories a device used. */
export const isUse = (event: TimelineEvent): boolean => event.type === 'used' && Object.keys(event).sort().join() === 'counts,id,ts,type'

/** Tell whether an event fits into a line, under its id or a foreign one. */
const fits = (event: TimelineEvent): boolean => [event, asForeign(event)].every(one => byteLength(lineOf(one)) <= MOST_LINE)

/** The events of segments, each with its device: an own id is valid only in a segment of its device. */
export const timelineOf = (segments: readonly { dev: string; data: Bytes }[]): TimelineEvent[] =>
  union(
    segments.map(({ dev, data }) =>
      parseLines(data)
        .filter(fits)
        .map(event => {
          const claimed = splitOwnId(event.id)
          return claimed !== null && claimed.device !== dev ? asForeign(event) : event
        })
    )
  )
