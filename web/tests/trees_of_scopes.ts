/** All scopes as plain files: written, read, and which becomes which (FORMAT.md 1.6). */

import { Refused, utf8 } from '../src/core/bytes.ts'
import { assignScopes, baseFiles, readScopeTree } from '../src/core/scope_tree.ts'
import type { Judge, Rows } from './judging.ts'

const entries = <T>(map: ReadonlyMap<string, T>): Record<string, T> => Object.fromEntries(map)

const scopesOf = (tree: Rows): unknown => {
  const read = readScopeTree(new Map(Object.entries(tree as Record<string, string>).map(([path, text]) => [path, utf8(text)])))
  return entries(new Map([...read].map(([scope, { files, problems, unread: _, ...rest }]) => [scope, { ...rest, files: entries(files), problems: problems.length }])))
}

export const scopeTrees: Judge = (all, court) => {
  for (const row of all.written) {
    const base = { texts: new Map<string, string>(Object.entries(row.texts ?? {})), events: row.events ?? [], index: row.index, card: row.card ?? null, forgotten: row.forgotten ?? [] }
    court.same(entries(baseFiles(row.scope, base)), row.tree, row.about)
  }
  for (const row of all.read) {
    court.same(scopesOf(row.tree), row.scopes, row.about)
    // The order in which a container lists its files says nothing.
    court.same(scopesOf(Object.fromEntries(Object.entries(row.tree).reverse())), row.scopes, row.about)
  }
  for (const row of all.assigned) {
    let chosen: unknown = null
    try {
      chosen = entries(assignScopes(row.theirs, row))
    } catch (error) {
      if (!(error instanceof Refused)) throw error
    }
    court.same(chosen, row.chosen, row.about)
  }
}
