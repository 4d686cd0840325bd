/** The prefix tree that a state is published as (FORMAT.md 6.1): made, and read whole. */

import { anyFields, type Bytes, byteLength, canonical, fields, hex, isHex, isObject, need, parseCanonical, sha256 } from './bytes.ts'
import type { Entry } from './state.ts'

const MOST_LEAF_BYTES = 48 << 10
const MOST_LEAF_ENTRIES = 64
const MOST_PREFIX = 16

const labelOf = (name: string): string => hex(sha256(name))
const sizeOf = (name: string, entry: unknown): number => byteLength(`${JSON.stringify(name)}:${canonical(entry)}`)
const isLeaf = (count: number, bytes: number, depth: number): boolean =>
  count <= 1 || (count <= MOST_LEAF_ENTRIES && bytes <= MOST_LEAF_BYTES) || depth === MOST_PREFIX

/** The path of a node, without the end that says how it is stored. */
export const nodePath = (prefix: string): string => (prefix === '' ? 's/top' : `s/${[...prefix].join('/')}`)

/** All nodes of a state as JSON by prefix, and its digest. */
export function buildTree(entries: Iterable<readonly [name: string, entry: Entry]>): { digest: string; nodes: Map<string, string> } {
  type Item = { readonly name: string; readonly entry: Entry; readonly label: string; readonly size: number }
  const nodes = new Map<string, string>()
  const put = (prefix: string, node: unknown): string => {
    const text = canonical(node)
    nodes.set(prefix, text)
    return hex(sha256(text))
  }
  const build = (all: readonly Item[], prefix: string): string => {
    const bytes = all.reduce((sum, one) => sum + one.size, 0)
    if (isLeaf(all.length, bytes, prefix.length)) return put(prefix, { e: Object.fromEntries(all.map(one => [one.name, one.entry])) })
    const below = new Map<string, Item[]>()
    for (const one of all) {
      const digit = one.label[prefix.length] as string
      const some = below.get(digit)
      if (some === undefined) below.set(digit, [one])
      else some.push(one)
    }
    return put(prefix, { n: Object.fromEntries([...below].map(([digit, some]) => [digit, build(some, prefix + digit)])) })
  }
  const all = [...entries].map(([name, entry]) => ({ name, entry, label: labelOf(name), size: sizeOf(name, entry) }))
  return { digest: build(all, ''), nodes }
}

/**
 * All entries below a digest. `read` gives the JSON of a node, or null where nothing with this hash is to be had: then all else is
 * checked, and it is refused as `damaged`.
 */
export function readTree(digest: string, read: (prefix: string, hash: string) => Bytes | null): Map<string, unknown> {
  const entries = new Map<string, unknown>()
  let isDamaged = false
  type Sum = { readonly count: number; readonly size: number }
  const leaf = (value: unknown, prefix: string): Sum => {
    const inside = anyFields(value)
    const names = Object.keys(inside)
    let size = 0
    for (const name of names) {
      need(labelOf(name).startsWith(prefix), 'format', 'an entry outside its prefix')
      size += sizeOf(name, inside[name])
      entries.set(name, inside[name])
    }
    need(isLeaf(names.length, size, prefix.length), 'format', 'a leaf that the rule does not make')
    need(names.length > 0 || prefix === '', 'format', 'an empty leaf below the top')
    return { count: names.length, size }
  }
  const walk = (prefix: string, hash: string): Sum | null => {
    const text = read(prefix, hash)
    if (text === null || hex(sha256(text)) !== hash) {
      isDamaged = true
      return null
    }
    const node = parseCanonical(text)
    if (isObject(node) && Object.hasOwn(node, 'e')) return leaf(fields(node, ['e']).e, prefix)
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

/** The entry of one name below a digest; {} where there is none. `read` gives the JSON of a node with this hash. */
export function entryBelow(digest: string, name: string, read: (prefix: string, hash: string) => Bytes): Entry {
  const label = labelOf(name)
  let [prefix, hash] = ['', digest]
  for (;;) {
    const node = parseCanonical(read(prefix, hash))
    if (isObject(node) && Object.hasOwn(node, 'e')) {
      const inside = anyFields(fields(node, ['e']).e)
      return Object.hasOwn(inside, name) ? (inside[name] as unknown as Entry) : {}
    }
    const below = anyFields(fields(node, ['n']).n)
    const digit = label[prefix.length] ?? ''
    need(prefix.length < MOST_PREFIX && (!Object.hasOwn(below, digit) || isHex(below[digit], 32)), 'format', 'not a child')
    if (!Object.hasOwn(below, digit)) return {}
    ;[prefix, hash] = [prefix + digit, below[digit] as string]
  }
}
