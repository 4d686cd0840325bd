/** Keys of memories, tokens of scopes, and their file names (FORMAT.md 1.1). */

import { hex, need, sha256 } from './bytes.ts'

export const INDEX_FILE = 'MEMORY.md'
const KEY = /^[a-z0-9][a-z0-9_-]{0,63}$(?![^])/
const CONFLICT = /^([a-z0-9][a-z0-9_-]{0,63})\.conflict-([0-9a-f]{8})\.md$(?![^])/
const DATE = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/
const PORTS = ['com', 'lpt'].flatMap(port => Array.from({ length: 10 }, (_, n) => `${port}${n}`))
const RESERVED = new Set(['memory', 'con', 'prn', 'aux', 'nul', ...PORTS])
const RESERVED_SCOPES = new Set(['timeline', 'scopes', 'all', 'global'])
const MOST_STEM = 55

export const isKey = (text: string): boolean => KEY.test(text) && !RESERVED.has(text)

/** Tell whether this is a scope's token, which never changes; its title can be renamed. */
export const isScope = (text: string): boolean => isKey(text) && !RESERVED_SCOPES.has(text) && !DATE.test(text)

export function fileName(key: string): string {
  need(isKey(key), 'format', `not a key of a memory: ${key}`)
  return `${key}.md`
}

/** The file name of an alternative. `hash`: of its bytes, 8 hex digits or more. */
export const conflictName = (key: string, hash: string): string => `${key}.conflict-${hash.slice(0, 8)}.md`

export function splitConflictName(name: string): { key: string; hash: string } | null {
  const [, key, hash] = CONFLICT.exec(name) ?? []
  return key !== undefined && hash !== undefined && !RESERVED.has(key) ? { key, hash } : null
}

/** Return the key of a foreign file name, and that name unless it is `<key>.md`. It depends only on the name. */
export function keyOfForeignName(found: string): { key: string; origin: string | null } {
  need(found.isWellFormed(), 'format', 'a name that is not Unicode text')
  // One name in different normal forms of file systems is one name.
  const name = found.normalize('NFC')
  const withoutEnd = name.endsWith('.md') ? name.slice(0, -3) : name
  if (name.endsWith('.md') && isKey(withoutEnd)) return { key: withoutEnd, origin: null }
  const plain = withoutEnd.normalize('NFKC').toLowerCase()
  const words = plain.replace(/[^a-z0-9_-]+/g, '_').replace(/^[_-]+/, '').replace(/_+$/, '')
  return { key: `${words.slice(0, MOST_STEM) || 'x'}-${hex(sha256(name)).slice(0, 8)}`, origin: name }
}
