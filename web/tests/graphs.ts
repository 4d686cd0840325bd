/** The graph: what texts say of it, and what is asked of it. */

import { utf8 } from '../src/core/bytes.ts'
import { parseFile } from '../src/core/memory_file.ts'
import { entitiesIn, partOf } from '../src/device/graph.ts'
import { entityIn, entityOf, Graph, relationType } from '../src/life/graph.ts'
import { folded, links } from '../src/life/links.ts'
import type { Judge } from './judging.ts'

export const graphs: Judge = (all, court) => {
  for (const row of all.links) court.same(links(row.text), row.to, row.text)
  for (const { names: [one, other], same } of all.same) court.same(folded(one) === folded(other), same, `${one} and ${other}`)
  for (const row of all.types) court.same(relationType(row.said), row.type, row.said)
  for (const row of all.entities) {
    const { name, kind, observations, made, out } = entityOf(row.key, parseFile(utf8(row.file)))
    court.same([name, kind, observations, made, out.map(one => [one.type, one.to])], [row.name, row.kind, row.observations, row.made, row.out], row.key)
  }
  for (const row of all.graphs) {
    const graph = new Graph((Object.entries(row.files) as [string, string][]).map(([key, text]) => entityIn(key, parseFile(utf8(text)))).filter(one => one !== null))
    court.same(graph.relations().map(one => [one.begin, one.type, one.end]), row.relations, row.name)
    court.same(entitiesIn(graph, {}), row.listed, row.name)
    for (const { entity, depth, most, keys, edges, more } of row.around) {
      const part = partOf(graph, { entity, depth, limit: most })
      court.same([part.nodes.map(one => one.key), part.edges.map(one => [one.begin, one.type, one.end]), part.more], [keys, edges, more], `${row.name}: around ${entity}, ${depth}, ${most}`)
    }
    for (const { words, most, keys } of row.words) court.same(graph.search(words, most), keys, `${row.name}: ${words}`)
    for (const { said, key } of row.found) court.same(graph.find(said.trim()), key, `${row.name}: ${said}`)
  }
}
