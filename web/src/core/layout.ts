/** The paths of a state's parts under a root (FORMAT.md 6.1). */

import { hex, sha256, unlessRefused } from './bytes.ts'
import type { Blocks } from './blocks.ts'
import type { State } from './state.ts'
import { buildTree, nodePath } from './tree.ts'

const MOST_IN_FOLDER = 64
const MOST_PREFIX = 16
const NAME_DIGITS = 40

/** The paths of objects, by the rule of prefix trees. */
export function objectPaths(hashes: Iterable<string>): string[] {
  const place = (names: readonly string[], depth: number): string[] =>
    names.length <= MOST_IN_FOLDER || depth === MOST_PREFIX
      ? names.map(name => ['o', ...name.slice(0, depth), name].join('/'))
      : [...'0123456789abcdef'].flatMap(digit => place(names.filter(name => name[depth] === digit), depth + 1))
  return place([...hashes].map(hash => hash.slice(0, NAME_DIGITS)), 0)
}

/** The files of a root by path, as CIDs; an unreadable folder counts as a file. */
export function filesOf(blocks: Blocks, root: string): Map<string, string> {
  const out = new Map<string, string>()
  const walk = (cid: string, path: string): void => {
    const names = unlessRefused(() => blocks.folder(cid))
    if (names === null) out.set(path, cid)
    else for (const [name, inner] of names) walk(inner, path === '' ? name : `${path}/${name}`)
  }
  walk(root, '')
  return out
}

/** Tell whether a root has exactly the files of its state, at the paths of the rule. */
export function isLaidOutByRule(blocks: Blocks, root: string, state: State, plain: boolean): boolean {
  const inside = plain ? 'memory/.ipfsmem/' : ''
  const files = filesOf(blocks, root)
  const wanted = new Set(['keyring.json', plain ? 'commit.json' : 'head.ipm'])
  for (const prefix of buildTree(state.entries).nodes.keys()) wanted.add(`${nodePath(prefix)}.${plain ? 'json' : 'ipm'}`)
  const objects = new Set<string>()
  for (const entry of state.entries.values()) {
    for (const value of Object.values(entry)) {
      // A root names only the objects that its maker had.
      for (const loc of [value.loc, value.base]) if (loc !== undefined && unlessRefused(() => blocks.object(loc[1])) !== null) objects.add(loc[1])
    }
  }
  // A readable file in a plain root is not an object.
  const shown = (cid: string): string => unlessRefused(() => hex(sha256(blocks.file(cid)))) ?? ''
  if (plain) for (const [path, cid] of files) if (!path.startsWith(inside)) objects.delete(shown(cid))
  for (const path of objectPaths(objects)) wanted.add(path)
  const found = [...files.keys()].filter(path => path.startsWith(inside)).map(path => path.slice(inside.length))
  return found.length === wanted.size && found.every(path => wanted.has(path))
}
