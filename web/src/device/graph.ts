/** The graph of one scope and of those that redirect to it, from the shown own texts. Unchanged texts are parsed once. */

import type { ShownView } from '../core/views.ts'
import { type Entity, entityIn, Graph } from '../life/graph.ts'
import type { GraphPart, Node } from '../results.ts'
import { MemoryError } from './errors.ts'
import { readableFile, type Shown } from './shown.ts'

const MOST = 1000
const DEEPEST = 20
const read = new WeakMap<ShownView, Entity | null>()

/** Return the current graph: for a key in several scopes, the entity of the first. Pending texts are not in it. */
export function graphOf(shown: Shown, scopes: readonly string[]): Graph {
  const found = new Map<string, Entity>()
  for (const scope of scopes.filter(one => !shown.isForgotten(one))) {
    for (const { name, key } of shown.memories([scope])) {
      const view = shown.view(name)
      if (view.shown === null || !view.own || found.has(key)) continue
      let one = read.get(view)
      if (one === undefined) {
        one = entityIn(key, readableFile(view.shown))
        read.set(view, one)
      }
      if (one !== null) found.set(key, one)
    }
  }
  return new Graph([...found.values()])
}

/** Return the created and the related entities, or those with all of some `words`; optionally of one kind. */
export function entitiesIn(graph: Graph, { words = '', kind = '', limit = MOST }: { words?: string; kind?: string; limit?: number }): Node[] {
  checkLimit(limit)
  const keys = words === '' ? graph.joined() : graph.search(words, limit)
  return keys.map(key => nodeOf(graph, key)).filter(one => kind === '' || one.kind === kind).slice(0, limit)
}

/** Return entities and the relations among them: all that are listed, or those at most `depth` relations away from one. */
export function partOf(graph: Graph, { entity = '', depth = 1, limit = MOST }: { entity?: string; depth?: number; limit?: number }): GraphPart {
  checkLimit(limit)
  if (!Number.isInteger(depth) || depth < 0 || depth > DEEPEST) throw new MemoryError('usage', `depth is 0 to ${DEEPEST}, not ${depth}`)
  const { keys, more } = entity === '' ? all(graph, limit) : graph.around(there(graph, entity), depth, limit)
  return { nodes: keys.map(key => nodeOf(graph, key)), edges: graph.relations(keys), more }
}

function all(graph: Graph, limit: number): { keys: string[]; more: boolean } {
  const found = graph.joined()
  return { keys: found.slice(0, limit), more: found.length > limit }
}

function there(graph: Graph, said: string): string {
  const key = graph.find(said.trim())
  if (key === null) throw new MemoryError('not found', `there is no entity ${said.slice(0, 80)}`)
  return key
}

function checkLimit(limit: number): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST) throw new MemoryError('usage', `limit is 1 to ${MOST}, not ${limit}`)
}

function nodeOf(graph: Graph, of: string): Node {
  const { key, name, kind, observations } = graph.entities.get(of) as Entity
  return { key, name, kind, observations }
}
