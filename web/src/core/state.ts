/** Names of entries, dots and values: their forms, and the signed messages (FORMAT.md 5). */

import {
  anyFields,
  type Bytes,
  canonical,
  fields,
  fromBase64url,
  fromHex,
  hex,
  isHex,
  isObject,
  join,
  need,
  number,
  utf8
} from './bytes.ts'
import { isKey, isScope } from './keys.ts'
import { MOST_OBJECT } from './limits.ts'
import { ObjectType } from './sealed.ts'

const MOST_BASES = 4
const MOST_DOTS_OF_DEVICE = 4

/** A parsed entry name: its kind (memory, segment, card), scope, and the type and context under which its bodies are sealed. */
export type EntryName = { readonly scope: string; readonly ctx: string } & (
  | { readonly kind: 'm'; readonly type: typeof ObjectType.memory; readonly key: string }
  | { readonly kind: 't'; readonly type: typeof ObjectType.segment; readonly day: string; readonly dev: string; readonly i: number }
  | { readonly kind: 'c'; readonly type: typeof ObjectType.card }
)

/** The name of an epoch key, the hash of the stored bytes, and their number. */
export type Location = readonly [ek: string, hash: string, size: number]

export type Value = {
  readonly b: readonly string[]
  readonly body: string | null
  readonly h: string
  readonly kind: 'live' | 'forgotten'
  readonly loc?: Location
  readonly base?: Location
  readonly of?: string
  readonly s?: string
}
/** Values by dot. */
export type Entry = Readonly<Record<string, Value>>
export type Dot = { readonly text: string; readonly dev: string; readonly n: number }

/** A device's counter: the number of its last write, 8 random bytes drawn for it, and its signature over both. */
export type Seen = { readonly n: number; readonly r: string; readonly s?: string }
export type State = { readonly entries: ReadonlyMap<string, Entry>; readonly seen: ReadonlyMap<string, Seen> }

function isDay(text: string): boolean {
  if (!/^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}$(?![^])/.test(text)) return false
  const day = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

const isCount = (text: string): boolean => /^(0|[1-9][0-9]{0,15})$(?![^])/.test(text) && Number.isSafeInteger(Number(text))

const MOST_READ = 100_000
const namesRead = new Map<string, EntryName>()

export function readName(name: string): EntryName {
  let found = namesRead.get(name)
  if (found === undefined) {
    found = nameIn(name)
    if (namesRead.size >= MOST_READ) namesRead.clear()
    namesRead.set(name, found)
  }
  return found
}

function nameIn(name: string): EntryName {
  const [kind = '', ...parts] = name.split('/')
  const ctx = parts.join('/')
  const scopeOf = (size: number): string => {
    need(parts.length === size || parts.length === size + 1, 'format', 'not the name of an entry')
    const scope = parts.length === size ? '' : (parts[0] as string)
    need(parts.length === size || isScope(scope), 'format', 'not a scope')
    return scope
  }
  if (kind === 'c') {
    need(parts.length === 1 && isScope(ctx), 'format', 'not a scope')
    return { kind, scope: ctx, ctx, type: ObjectType.card }
  }
  if (kind === 'm') {
    const scope = scopeOf(1)
    const key = parts.at(-1) ?? ''
    need(isKey(key), 'format', 'not a key')
    return { kind, scope, ctx, key, type: ObjectType.memory }
  }
  need(kind === 't', 'format', 'not the name of an entry')
  const scope = scopeOf(3)
  const [day = '', dev = '', i = ''] = parts.slice(-3)
  need(isDay(day) && isHex(dev, 8) && isCount(i), 'format', 'not a segment')
  return { kind, scope, ctx, day, dev, i: Number(i), type: ObjectType.segment }
}

export function readDot(text: string): Dot {
  const [dev, n = '', ...more] = text.split('-')
  need(isHex(dev, 8) && more.length === 0 && isCount(n) && n !== '0', 'format', 'not a dot')
  return { text, dev, n: Number(n) }
}

function location(loc: unknown): void {
  need(Array.isArray(loc) && loc.length === 3, 'format', 'not a location')
  const [ek, hash, size] = loc as unknown[]
  need((ek === '' || isHex(ek, 8)) && isHex(hash, 32), 'format', 'not a location')
  need(Number.isSafeInteger(size) && (size as number) >= 0 && (size as number) <= MOST_OBJECT, 'format', 'not a size')
}

/** Check the form of one value; `published`: it must have a signature and, if live, a location. */
function checkValue(name: EntryName, dot: Dot, value: unknown, published: boolean): void {
  need(isObject(value), 'format', 'not a value')
  const isLive = value.kind === 'live'
  need(isLive || value.kind === 'forgotten', 'format', 'neither live nor forgotten')
  const isMemory = name.kind === 'm'
  const must = ['b', 'body', 'h', 'kind', ...(published ? ['s'] : []), ...(published && isLive ? ['loc'] : [])]
  fields(value, must, [...(published ? [] : ['s']), ...(isLive ? ['loc', ...(isMemory ? ['base', 'of'] : [])] : [])])
  const { b, body, h, loc, base, of, s } = value
  need(isHex(h, 8), 'format', 'not a clock')
  need(Array.isArray(b) && b.length <= MOST_BASES && b.every(one => isHex(one, 16)), 'format', 'not a list of bases')
  need(new Set(b).size === b.length, 'format', 'a base twice')
  need(b.length === 0 || (isLive && isMemory), 'format', 'bases where there are none')
  need(isLive ? isHex(body, 32) : body === null, 'format', 'an unexpected body')
  if (name.kind === 't') need(isLive && name.dev === dot.dev, 'format', "a segment forgotten, or another device's")
  if (loc !== undefined) location(loc)
  if (base !== undefined) {
    need(b.length > 0, 'format', 'a base without a list of bases')
    location(base)
  }
  if (of !== undefined) need((of === 'foreign' || isHex(of, 8)) && of !== dot.dev, 'format', 'not an author')
  if (s !== undefined) fromBase64url(s, 64)
}

/** Check one entry: dots with values, each in its form. */
export function checkEntry(nameText: string, entry: unknown, published = true): Entry {
  const name = readName(nameText)
  const dots = Object.entries(anyFields(entry))
  const count = new Map<string, number>()
  for (const [text, value] of dots) {
    const dot = readDot(text)
    const before = count.get(dot.dev) ?? 0
    need(before < MOST_DOTS_OF_DEVICE, 'format', 'five dots of one device')
    count.set(dot.dev, before + 1)
    checkValue(name, dot, value, published)
  }
  return entry as Entry
}

/** The message that the device of a dot signs. */
export function valueMessage(name: string, dot: string, value: Value, tag: Bytes): Bytes {
  const { b, body, h, kind, of } = value
  const vault = hex(tag)
  return utf8(`ipfsmem/v1/value\0${canonical(of === undefined ? { b, body, dot, e: name, h, kind, vault } : { b, body, dot, e: name, h, kind, of, vault })}`)
}

/** The message that a device signs for its counter. */
export const seenMessage = (dev: string, n: number, r: string, tag: Bytes): Bytes =>
  join('ipfsmem/v1/seen', [0], tag, fromHex(dev), number(n, 8), fromHex(r))
