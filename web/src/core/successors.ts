/** Fields that a new text takes over from those that it replaces: its bases, and its author (FORMAT.md 5 and 5.2). */

import { compare } from './bytes.ts'
import type { Entry, Location, Value } from './state.ts'
import { type IsMine, isOwnWord } from './views.ts'

const MOST_BASES = 4

/** The name of a text in lists of bases. */
export const shortHash = (body: string): string => body.slice(0, 32)

/** Values of these dots, the shown one first. */
export function inViewOrder(entry: Entry, dots: readonly string[]): [dot: string, value: Value][] {
  const order = ([dot, value]: [string, Value]): [string, string, string] => [value.h, dot.slice(0, 16), value.body ?? '']
  return Object.entries(entry)
    .filter(([dot]) => dots.includes(dot))
    .sort((a, b) => -compare(order(a), order(b)))
}

/** `b` and `base` of a text that replaces these, in view order: the published ones among them, then their lists. */
export function nextBases(replaced: readonly Value[], isPublished: (hash: string) => boolean): { b: string[]; base: Location | null } {
  const found = new Map<string, Location | undefined>()
  const note = (hash: string, loc: Location | undefined): void => {
    if (found.get(hash) === undefined) found.set(hash, loc)
  }
  for (const value of replaced) if (value.body !== null && isPublished(shortHash(value.body))) note(shortHash(value.body), value.loc)
  for (const value of replaced) value.b.forEach((hash, i) => note(hash, i === 0 ? value.base : undefined))
  const b = [...found.keys()].slice(0, MOST_BASES)
  return { b, base: b[0] === undefined ? null : (found.get(b[0]) ?? null) }
}

/** The `of` of a copy of a value; '' if it is the copier's own text. */
export function authorOf(dot: string, value: Pick<Value, 'of'>, isMine: IsMine): string {
  if (value.of !== undefined && (value.of === 'foreign' || !isMine(value.of))) return value.of
  return isMine(dot.slice(0, 16)) ? '' : dot.slice(0, 16)
}

/**
 * The `of` of a new text that replaces these dots: of the first text of others among them, '' if an own value has the same body; null if
 * nothing there determines it.
 */
export function ofWhenReplacing(entry: Entry, replaces: readonly string[], body: string, isMine: IsMine): string | null {
  const isOwn = isOwnWord(isMine)
  const own = new Set(Object.entries(entry).flatMap(([dot, value]) => (isOwn(dot, value) ? [value.body] : [])))
  if (own.has(body)) return ''
  for (const [dot, value] of inViewOrder(entry, replaces)) if (value.body !== null && !own.has(value.body)) return authorOf(dot, value, isMine)
  return null
}
