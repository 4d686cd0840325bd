/** The prefix tree of a published state (FORMAT.md 6.1): made, and read whole. */

import { anyFields, type Bytes, byteLength, canonical, fields, hex, isHex, isObject, need, parseCanonical, sha256 } from './bytes.ts'
import type { Target } from './dagpb.ts'
import type { EpochKey } from './sealed.ts'
import type { Entry } from './state.ts'

const MOST_LEAF_BYTES = 48 << 10
const MOST_LEAF_ENTRIES = 64
const MOST_PREFIX = 16

const labelOf = (name: string): string => hex(sha256(name))
const isLeaf = (count: number, bytes: number, depth: number): boolean =>
  count <= 1 || (count <= MOST_LEAF_ENTRIES && bytes <= MOST_LEAF_BYTES) || depth === MOST_PREFIX

/** The path of a node, without the extension that says how it is stored. */
export const nodePath = (prefix: string): string => (prefix === '' ? 's/top' : `s/${[...prefix].join('/')}`)

type Item = { readonly name: string; readonly entry: Entry; readonly label: string; readonly size: number }
type Leaf = { readonly items: readonly Item[]; readonly text: string; readonly hash: string }

/**
 * Cached results about states, so that a state that differs in one entry costs only the difference. An empty cache gives the same results.
 * Entries are known by identity, and never changed.
 */
export class StateCache {
  readonly #labels = new Map<string, string>()
  readonly #json = new WeakMap<Entry, string>()
  readonly #leaves = new Map<string, Leaf>()
  readonly #read = new Map<string, ReadonlyMap<string, unknown>>()
  readonly #made = new Map<string, { readonly what: string; readonly to: Target }>()
  readonly #rings = new Map<string, unknown>()

  label(name: string): string {
    return kept(this.#labels, name, () => labelOf(name), MOST_NAMES)
  }

  /** The canonical JSON of an entry. */
  json(entry: Entry): string {
    let text = this.#json.get(entry)
    if (text === undefined) this.#json.set(entry, (text = canonical(entry)))
    return text
  }

  size(name: string, entry: Entry): number {
    return byteLength(`${JSON.stringify(name)}:`) + byteLength(this.json(entry))
  }

  /** The canonical JSON of a leaf. */
  leafText(entries: readonly (readonly [name: string, entry: unknown])[]): string {
    const lines = [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, one]) => `${JSON.stringify(name)}:${isObject(one) ? this.json(one as Entry) : canonical(one)}`)
    return `{"e":{${lines.join(',')}}}`
  }

  /** The leaf of a prefix: the cached one if it has exactly these entries. */
  leaf(prefix: string, items: readonly Item[]): Leaf {
    const held = this.#leaves.get(prefix)
    if (held !== undefined && held.items.length === items.length && held.items.every((one, at) => one.name === items[at]?.name && one.entry === items[at]?.entry)) return held
    const text = this.leafText(items.map(one => [one.name, one.entry]))
    const made = { items, text, hash: hex(sha256(text)) }
    this.#leaves.set(prefix, made)
    this.noteLeaf(made.hash, new Map(items.map(one => [one.name, one.entry])))
    return made
  }

  /** The entries of a leaf with this hash, as read or made before. */
  entriesOf(hash: string): ReadonlyMap<string, unknown> | undefined {
    return this.#read.get(hash)
  }

  /** Cache the entries of a leaf that was made, or read and checked. */
  noteLeaf(hash: string, entries: ReadonlyMap<string, unknown>): void {
    kept(this.#read, hash, () => entries, MOST_LEAVES)
  }

  /** A cached result about a ring, under a name that identifies all its inputs. Refusals are not cached. */
  async ring<T>(name: string, read: () => Promise<T>): Promise<T> {
    const held = this.#rings.get(name) as T | undefined
    if (held !== undefined) return held
    const made = await read()
    return kept(this.#rings, name, () => made, MOST_RINGS) as T
  }

  /** The link to the part last made at a path of a root; null if that was another one. */
  made(path: string, what: string): Target | null {
    const held = this.#made.get(path)
    return held?.what === what ? held.to : null
  }

  noteMade(path: string, what: string, to: Target): void {
    this.#made.set(path, { what, to })
  }
}

const MOST_NAMES = 100_000
const MOST_LEAVES = 4000
const MOST_RINGS = 64

/** Return the cached value of a name, or make it; the oldest are dropped beyond `most`. */
function kept<T>(held: Map<string, T>, name: string, make: () => T, most: number): T {
  let one = held.get(name)
  if (one === undefined) {
    one = make()
    held.set(name, one)
    if (held.size > most) held.delete(held.keys().next().value as string)
  }
  return one
}

/** The identity of a sealed node, for `StateCache.made`. */
export const sealedAs = (key: EpochKey, hash: string): string => `${key.id} ${hash}`

/** All nodes of a state as JSON by prefix, their hashes, and its digest. */
export function buildTree(
  entries: Iterable<readonly [name: string, entry: Entry]>,
  known = new StateCache()
): { digest: string; nodes: Map<string, string>; hashes: Map<string, string> } {
  const nodes = new Map<string, string>()
  const hashes = new Map<string, string>()
  const put = (prefix: string, node: unknown): string => {
    const text = canonical(node)
    nodes.set(prefix, text)
    const hash = hex(sha256(text))
    hashes.set(prefix, hash)
    return hash
  }
  const build = (all: readonly Item[], prefix: string): string => {
    const bytes = all.reduce((sum, one) => sum + one.size, 0)
    if (isLeaf(all.length, bytes, prefix.length)) {
      const { text, hash } = known.leaf(prefix, all)
      nodes.set(prefix, text)
      hashes.set(prefix, hash)
      return hash
    }
    const below = new Map<string, Item[]>()
    for (const one of all) {
      const digit = one.label[prefix.length] as string
      const some = below.get(digit)
      if (some === undefined) below.set(digit, [one])
      else some.push(one)
    }
    return put(prefix, { n: Object.fromEntries([...below].map(([digit, some]) => [digit, build(some, prefix + digit)])) })
  }
  const all = [...entries].map(([name, entry]) => ({ name, entry, label: known.label(name), size: known.size(name, entry) }))
  return { digest: build(all, ''), nodes, hashes }
}

/** The node of the empty state, which every device has. */
const EMPTY = hex(sha256('{"e":{}}'))

/**
 * Read all entries below a digest. `read` returns the JSON of a node, or null if unavailable: then everything else is checked, and it is
 * refused as `damaged`.
 */
export function readTree(digest: string, read: (prefix: string, hash: string) => Bytes | null, known = new StateCache()): Map<string, unknown> {
  const entries = new Map<string, unknown>()
  if (digest === EMPTY) return entries
  let isDamaged = false
  type Sum = { readonly count: number; readonly size: number }
  const leaf = (inside: ReadonlyMap<string, unknown>, prefix: string): Sum => {
    const names = [...inside.keys()]
    let size = 0
    for (const [name, entry] of inside) {
      need(known.label(name).startsWith(prefix), 'format', 'an entry outside its prefix')
      size += isObject(entry) ? known.size(name, entry as Entry) : byteLength(`${JSON.stringify(name)}:${canonical(entry)}`)
      entries.set(name, entry)
    }
    need(isLeaf(names.length, size, prefix.length), 'format', 'a leaf that the rule does not make')
    need(names.length > 0 || prefix === '', 'format', 'an empty leaf below the top')
    return { count: names.length, size }
  }
  const walk = (prefix: string, hash: string): Sum | null => {
    const held = known.entriesOf(hash)
    if (held !== undefined) return leaf(held, prefix)
    const text = read(prefix, hash)
    if (text === null || hex(sha256(text)) !== hash) {
      isDamaged = true
      return null
    }
    const node = parseCanonical(text, value => (isObject(value) && isObject(value.e) && Object.keys(value).length === 1 ? known.leafText(Object.entries(value.e)) : canonical(value)))
    if (isObject(node) && Object.hasOwn(node, 'e')) {
      const inside = new Map<string, unknown>(Object.entries(anyFields(fields(node, ['e']).e)))
      const sum = leaf(inside, prefix)
      known.noteLeaf(hash, inside)
      return sum
    }
    const children = anyFields(fields(node, ['n']).n)
    const digits = Object.keys(children)
    need(digits.length > 0 && prefix.length < MOST_PREFIX, 'format', 'an inner node that the rule does not make')
    for (const digit of digits) need(/^[0-9a-f]$/.test(digit) && isHex(children[digit], 32), 'format', 'not a child')
    const below = digits.map(digit => walk(prefix + digit, children[digit] as string))
    if (below.includes(null)) return null
    const sum = (below as Sum[]).reduce((all, one) => ({ count: all.count + one.count, size: all.size + one.size }))
    need(!isLeaf(sum.count, sum.size, prefix.length), 'format', 'an inner node that the rule does not make')
    return sum
  }
  walk('', digest)
  need(!isDamaged, 'damaged', 'a part of the state cannot be read')
  return entries
}
