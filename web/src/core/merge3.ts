/** The three-way merge of memory files, by line and by field (FORMAT.md 5). */

import { type Bytes, byCodePoints, same, unlessRefused, utf8 } from './bytes.ts'
import { hasNormalHeader, renderOver } from './header_edit.ts'
import { MOST_FILE } from './limits.ts'
import { type Field, KNOWN_FIELDS, type MemoryFile, parseFile, readTags, renderFile, writeTags } from './memory_file.ts'

/** Maximum of base lines times side lines; a larger pair is not merged. */
const MOST_PAIRS = 4_000_000

/** Map each base line to its line in the side, in a longest common subsequence, walked from the start. */
function matches(base: readonly string[], side: readonly string[]): Map<number, number> {
  const width = side.length + 1
  const table = new Uint32Array((base.length + 1) * width)
  const at = (i: number, j: number): number => table[i * width + j] as number
  for (let i = base.length - 1; i >= 0; i--) {
    for (let j = side.length - 1; j >= 0; j--) {
      table[i * width + j] = base[i] === side[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const out = new Map<number, number>()
  for (let i = 0, j = 0; i < base.length && j < side.length; ) {
    if (base[i] === side[j]) out.set(i++, j++)
    else if (at(i + 1, j) >= at(i, j + 1)) i++
    else j++
  }
  return out
}

const equal = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((one, i) => one === b[i])

/** Return the merged lines, or null on conflict. */
export function mergeLines(base: readonly string[], a: readonly string[], b: readonly string[]): readonly string[] | null {
  if (equal(a, b) || equal(b, base)) return a
  if (equal(a, base)) return b
  if (base.length * Math.max(a.length, b.length) > MOST_PAIRS) return null
  const [left, right] = [matches(base, a), matches(base, b)]
  const out: string[] = []
  let [i, j, k] = [0, 0, 0]
  const region = (toBase: number, toA: number, toB: number): boolean => {
    const [old, ours, theirs] = [base.slice(i, toBase), a.slice(j, toA), b.slice(k, toB)]
    if (equal(ours, theirs) || equal(theirs, old)) out.push(...ours)
    else if (equal(ours, old)) out.push(...theirs)
    else return false
    return true
  }
  for (const [n, line] of base.entries()) {
    const [inA, inB] = [left.get(n), right.get(n)]
    if (inA === undefined || inB === undefined) continue
    if (!region(n, inA, inB)) return null
    out.push(line)
    ;[i, j, k] = [n + 1, inA + 1, inB + 1]
  }
  return region(base.length, a.length, b.length) ? out : null
}

/** Return the merged fields, or null on conflict. */
export function mergeFields(base: readonly Field[], a: readonly Field[], b: readonly Field[]): Field[] | null {
  const [old, ours, theirs] = [new Map(base), new Map(a), new Map(b)]
  const out: Field[] = []
  for (const name of new Set<string>([...KNOWN_FIELDS, ...ours.keys(), ...theirs.keys()])) {
    const [was, mine, other] = [old.get(name), ours.get(name), theirs.get(name)]
    let value: string | undefined
    if (mine === other || other === was) value = mine
    else if (mine === was) value = other
    else if (mine === undefined || other === undefined) return null
    else if (name === 'updated' || name === 'created') value = [mine, other].sort(byCodePoints)[name === 'updated' ? 1 : 0]
    else if (name === 'tags') value = writeTags([...new Set([...readTags(mine), ...readTags(other)])].sort(byCodePoints))
    else return null
    if (value !== undefined) out.push([name, value])
  }
  return out
}

/** Apply the merge to one side, so that header text other than fields stays; null if both sides changed that. */
function withKeptHeaders(merged: MemoryFile, base: Bytes, a: Bytes, b: Bytes): Bytes | null {
  const made = unlessRefused(() => [base, a, b].map(data => renderOver(data, merged)))
  if (made === null) return null
  const [ofBase, ofA, ofB] = made as [Bytes, Bytes, Bytes]
  const out = same(ofA, ofB) || same(ofB, ofBase) ? ofA : same(ofA, ofBase) ? ofB : null
  const again = out && unlessRefused(() => parseFile(out))
  const isRight = again && again.body === merged.body && again.fields.length === merged.fields.length
  return isRight && merged.fields.every(([name, value]) => again.fields.some(one => one[0] === name && one[1] === value)) ? out : null
}

const linesOf = (body: string): string[] => (body === '' ? [] : body.split('\n'))

/** Return the merged file, or null on conflict. */
export function merge3(base: Bytes, a: Bytes, b: Bytes): Bytes | null {
  const read = unlessRefused(() => [parseFile(base), parseFile(a), parseFile(b)] as const)
  if (read === null) return null
  const [old, ours, theirs] = read
  const fields = mergeFields(old.fields, ours.fields, theirs.fields)
  const body = mergeLines(linesOf(old.body), linesOf(ours.body), linesOf(theirs.body))
  if (fields === null || body === null) return null
  const merged = { fields, body: body.join('\n') }
  const out = [base, a, b].every(hasNormalHeader) ? utf8(renderFile(merged)) : withKeptHeaders(merged, base, a, b)
  if (out === null) return null
  return out.length > MOST_FILE || unlessRefused(() => parseFile(out)) === null ? null : out
}
