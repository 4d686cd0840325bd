/** The two orders of text: by code points, as the format sorts, and by units, as JSON names its parts. Each has a quick way here that must agree with the plain one. */

import { byCodePoints, canonical } from '../src/core/bytes.ts'
import type { Court } from './judging.ts'

/** Halves of pairs stand alone in some, though no text of the format has one. */
const TEXTS = ['', 'a', 'ab', 'b', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10001}', '\u{1f600}', 'a\u{1f600}', 'a\uffff', 'a\ud83d', '\ud83d', '\ud83dz', '\ud83d\ue000', '\ude00', '\u{1f600}a', '\u{1f600}\uffff', '\u{1f600}\u{10000}']
const VALUES = [
  [{ 10: 1, 9: 2, a: { c: 1, b: [{ z: 1, y: 2 }] } }, '{"10":1,"9":2,"a":{"b":[{"y":2,"z":1}],"c":1}}'],
  [[{ b: null, a: true }], '[{"a":true,"b":null}]'],
  [{ a: 1, b: '\u2028"' }, '{"a":1,"b":"\u2028\\""}']
] as const

const points = (text: string): number[] => Array.from(text, letter => letter.codePointAt(0) as number)

function byPoints(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((one, i) => one !== b[i])
  return at < 0 ? a.length - b.length : (a[at] as number) - (b[at] ?? -1)
}

export function compareOrders(court: Court): void {
  for (const a of TEXTS) for (const b of TEXTS) court.same(Math.sign(byCodePoints(a, b)), Math.sign(byPoints(points(a), points(b))), `${JSON.stringify(a)} and ${JSON.stringify(b)}`)
  for (const [value, text] of VALUES) court.same(canonical(value), text, text)
}
