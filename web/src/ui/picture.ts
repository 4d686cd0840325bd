/** Layout of a small graph: the chosen entity in the centre, the others in rings by distance. Equal graphs give equal pictures. */

import type { Graph } from './life.ts'

/** Width and height of a picture, and maximum number of entities. */
export const WIDTH = 640
export const HEIGHT = 420
export const NODES = 40
/** Characters of a name in the picture. */
const SHORT = 16
/** In larger rings, names point outward from the centre: below their spots they would overlap. */
const CROWDED = 12

export type Spot = { readonly key: string; readonly name: string; readonly short: string; readonly kind: string; readonly x: number; readonly y: number; readonly turn: number | undefined }
export type Line = { readonly x1: number; readonly y1: number; readonly x2: number; readonly y2: number; readonly words: string }

/** `left`: number of entities that did not fit; `turn`: degrees by which an outward name is turned, undefined for one below its spot. */
export function placed(graph: Graph, middle: string): { spots: readonly Spot[]; lines: readonly Line[]; left: number } {
  const rings = ringsOf(graph, middle)
  const shown = rings.flat().slice(0, NODES)
  const kept = new Set(shown)
  const spots = new Map<string, Spot>()
  const of = new Map(graph.nodes.map(one => [one.key, one]))
  const full = rings.map(ring => ring.filter(key => kept.has(key))).filter(ring => ring.length)
  const outer = full.length - (full[0]?.[0] === middle ? 1 : 0)
  for (const [number, ring] of full.entries()) {
    const away = full[0]?.[0] === middle ? number : number + 1
    const share = away === 0 ? 0 : away / outer
    const crowded = ring.length > CROWDED
    for (const [at, key] of ring.entries()) {
      // Half a step on from the ring before, so that names do not overlap.
      const angle = ((at + (away % 2) / 2) / ring.length) * 2 * Math.PI - Math.PI / 2
      const one = of.get(key)!
      const short = one.name.length > SHORT ? `${one.name.slice(0, SHORT - 1)}…` : one.name
      const [across, down] = [(WIDTH / 2 - (crowded ? 126 : 70)) * share * Math.cos(angle), (HEIGHT / 2 - (crowded ? 120 : 36)) * share * Math.sin(angle)]
      const turn = crowded ? round((Math.atan2(down, across) * 180) / Math.PI) : undefined
      spots.set(key, { key, name: one.name, short, kind: one.kind, x: round(WIDTH / 2 + across), y: round(HEIGHT / 2 - (crowded ? 0 : 8) + down), turn })
    }
  }
  const lines = graph.edges.flatMap(one => {
    const [begin, end] = [spots.get(one.begin), spots.get(one.end)]
    if (begin === undefined || end === undefined || begin === end) return []
    return [{ x1: begin.x, y1: begin.y, x2: end.x, y2: end.y, words: `${begin.name} ${one.type} ${end.name}` }]
  })
  return { spots: [...spots.values()], lines, left: graph.nodes.length - spots.size }
}

/** The keys by distance in relations; without a centre all in one ring. */
function ringsOf(graph: Graph, middle: string): string[][] {
  const all = graph.nodes.map(one => one.key)
  if (!all.includes(middle)) return [all]
  const beside = new Map<string, string[]>()
  for (const { begin, end } of graph.edges) for (const [one, other] of [[begin, end], [end, begin]] as const) beside.set(one, [...(beside.get(one) ?? []), other])
  const rings: string[][] = [[middle]]
  const seen = new Set([middle])
  for (let ring = rings[0]!; ring.length; ) {
    const next = [...new Set(ring.flatMap(key => beside.get(key) ?? []))].filter(key => !seen.has(key) && all.includes(key))
    for (const key of next) seen.add(key)
    if (next.length) rings.push(next)
    ring = next
  }
  return rings
}

function round(number: number): number {
  return Math.round(number * 10) / 10
}
