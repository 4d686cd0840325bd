/**
 * The graph of some memories: each is an entity, with observations and relations, both derived from its text.
 *
 * A list item is an observation, `- works at [[acme]]` or, below a line `Relations:`, `- works at: Acme` is a relation, and any other
 * `[[link]]` one of the type `links_to`. Every walk ends at an entity that it has visited, and has a limit.
 */

import { byCodePoints, byteLength } from '../core/bytes.ts'
import { isKey, keyOfForeignName } from '../core/keys.ts'
import { fieldOf, type MemoryFile, readTags } from '../core/memory_file.ts'
import { isSessionPart } from '../core/sessions.ts'
import type { Edge } from '../results.ts'
import { split as wordsOf } from '../recall/terms.ts'
import { folded, links, targetOf } from './links.ts'
import { split, trim, WHITE } from '../core/white.ts'

const TAG = 'entity'
/** The source of an entity that was imported without that tag. */
const IMPORTED = 'mcp-memory:'
const LINK = 'links_to'
const SECTION = 'Relations:'
const LONGEST_TYPE = 64
const LONGEST_FREE_KEY = 256
const MOST_LINKS = 1000
const ITEM = new RegExp(`^[-*] +([^${WHITE}][^]*)$`, 'u')
const RELATED = new RegExp(`^([^:\\[\\]]{1,64}): *([^${WHITE}][^]*)$`, 'u')
const TYPED = /^([^:[\]]{1,64}?):? *\[\[([^[\]\n]{1,200})\]\]\.?$/u

/** `made`: created as an entity, not only a memory that links. `out`: its relations, each to a name or key `to`. */
export type Entity = { readonly key: string; readonly name: string; readonly kind: string; readonly observations: readonly string[]; readonly out: readonly Out[]; readonly made: boolean }
export type Out = { readonly type: string; readonly to: string }

/** Tell whether a memory holds the value of a free key (FORMAT.md 1.7): the free key is in a field, or was the name in earlier versions. */
function isValue(key: string, file: MemoryFile): boolean {
  const name = fieldOf(file, 'name')
  let free = fieldOf(file, 'value_key')
  if (free === '' && readTags(fieldOf(file, 'tags')).includes('key-value')) free = (isKey(name) ? name : keyOfForeignName(name).key) === key ? name : key
  else if (free === '' && fieldOf(file, 'category') === 'kv' && fieldOf(file, 'source').startsWith('librefang:')) free = name || key
  return free !== '' && byteLength(free) <= LONGEST_FREE_KEY
}

/** Return the entity of a memory; null for parts of sessions, and for values. */
export const entityIn = (key: string, file: MemoryFile): Entity | null =>
  isSessionPart(key, fieldOf(file, 'type'), fieldOf(file, 'session')) || isValue(key, file) ? null : entityOf(key, file)

/** Return the entity of a memory file. */
export function entityOf(key: string, file: MemoryFile): Entity {
  const observations: string[] = []
  const out = new Map<string, Out>()
  const add = (type: string, to: string): unknown => out.set(JSON.stringify([type, to]), { type, to })
  let isBelow = false
  for (const line of file.body.split('\n')) {
    if (trim(line) === SECTION) {
      isBelow = true
      continue
    }
    const said = ITEM.exec(line)?.[1]
    if (said !== undefined) {
      const text = trim(said)
      const [, type, to] = TYPED.exec(text) ?? (isBelow ? RELATED.exec(text) : null) ?? []
      if (type !== undefined && to !== undefined) {
        add(relationType(type), targetOf(to))
        continue
      }
      observations.push(text)
    } else if (trim(line) !== '') isBelow = false
    for (const to of links(line)) add(LINK, to)
  }
  return {
    key, name: fieldOf(file, 'name') || key, kind: fieldOf(file, 'category') || fieldOf(file, 'type'), observations,
    out: [...out.values()].slice(0, MOST_LINKS), made: readTags(fieldOf(file, 'tags')).includes(TAG) || fieldOf(file, 'source').startsWith(IMPORTED)
  }
}

/** Normalise a relation type: lower case, `_` for blanks. */
export function relationType(said: string): string {
  const type = split(said.replace(/^[ *_`]+|[ *_`]+$/g, '').toLowerCase()).join('_')
  return [...type].slice(0, LONGEST_TYPE).join('') || LINK
}

export class Graph {
  readonly entities: ReadonlyMap<string, Entity>
  /** Keys by the name of the entity, in order: a name refers to the first. */
  readonly #named = new Map<string, string[]>()
  /** The entities whose relations end at a name or key. */
  readonly #said = new Map<string, Set<string>>()
  readonly #out = new Map<string, readonly Edge[]>()

  constructor(entities: readonly Entity[]) {
    const sorted = [...entities].sort((a, b) => byCodePoints(a.key, b.key))
    this.entities = new Map(sorted.map(one => [one.key, one]))
    for (const one of sorted) {
      const name = folded(one.name)
      this.#named.set(name, [...(this.#named.get(name) ?? []), one.key])
      for (const { to } of one.out) this.#saying(folded(to)).add(one.key)
    }
  }

  /** Return the key for a key or a name; of several with one name the least. */
  find(said: string): string | null {
    return this.entities.has(said) ? said : (this.#named.get(folded(said))?.[0] ?? null)
  }

  /** The relations from an entity to existing ones. */
  out(key: string): readonly Edge[] {
    let found = this.#out.get(key)
    if (found === undefined) {
      found = (this.entities.get(key)?.out ?? []).flatMap(({ type, to }) => {
        const end = this.find(to)
        return end === null ? [] : [{ begin: key, type, end }]
      })
      this.#out.set(key, found)
    }
    return found
  }

  /** The relations that end at an entity. */
  into(key: string): Edge[] {
    const name = folded(this.entities.get(key)?.name ?? key)
    // If another entity of that name comes first, the name refers to that one.
    const who = [...(this.#said.get(folded(key)) ?? []), ...(this.#named.get(name)?.[0] === key ? (this.#said.get(name) ?? []) : [])]
    return [...new Set(who)].sort(byCodePoints).flatMap(begin => this.out(begin).filter(one => one.end === key))
  }

  /** The relations among some entities, by the key at which they begin. */
  relations(keys: Iterable<string> = this.entities.keys()): Edge[] {
    const wanted = new Set(keys)
    return [...wanted].sort(byCodePoints).flatMap(key => this.out(key).filter(one => wanted.has(one.end)))
  }

  /** By key, the created entities, and those at either end of a relation. */
  joined(): string[] {
    const ends = new Set(this.relations().flatMap(one => [one.begin, one.end]))
    return [...this.entities.values()].filter(one => one.made || ends.has(one.key)).map(one => one.key)
  }

  /** Return the entities at most `depth` relations away, nearest first, and whether there are more than `most`. */
  around(key: string, depth: number, most: number): { keys: string[]; more: boolean } {
    const met = new Set([key])
    let edge = [key]
    for (let step = 0; step < depth; step++) {
      const following: string[] = []
      for (const here of edge) {
        for (const there of [...this.out(here).map(one => one.end), ...this.into(here).map(one => one.begin)]) {
          if (met.has(there)) continue
          if (met.size >= most) return { keys: [...met], more: true }
          met.add(there)
          following.push(there)
        }
      }
      edge = following
    }
    return { keys: [...met], more: false }
  }

  /** Return the keys of the entities with all words of a query in their name, kind or observations. */
  search(query: string, most: number): string[] {
    const words = wordsOf(query)
    if (words.length === 0) return []
    const found: string[] = []
    for (const { key, name, kind, observations } of this.entities.values()) {
      if (found.length >= most) break
      const there = wordsOf([key, name, kind, ...observations].join(' '))
      if (words.every(word => there.some(other => other.includes(word)))) found.push(key)
    }
    return found
  }

  #saying(name: string): Set<string> {
    let found = this.#said.get(name)
    if (found === undefined) this.#said.set(name, (found = new Set()))
    return found
  }
}
