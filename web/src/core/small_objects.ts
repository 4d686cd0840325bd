/** Names and limits of small objects, which a provider stores outside of packs and trees (FORMAT.md 7.8). */

import { type Bytes, hex, join, need, sha256 } from './bytes.ts'

/** Bytes of an object; none is empty. */
export const MOST_SMALL_OBJECT = 1 << 20
/** Objects or boxes in one request. */
export const SMALL_BATCH = 64
/** Objects of one box that are listed: the first ones by name. */
const MOST_LISTED = 10_000
const MOST_LABEL = 64
const BOX = /^[a-z0-9]{16,32}$/
const NAME = /^([a-z0-9]{16,32})\/([a-z0-9-]+(?:\.[a-z0-9-]+)*)\.([0-9a-f]{64})$/

export type SmallName = { readonly box: string; readonly label: string; readonly digest: string }

/** The box of the vault with this anchor. */
export const smallBox = (anchor: Bytes): string => hex(sha256(join('ipfsmem/v1/small\0', anchor))).slice(0, 32)

/** The name of an object. Refused for a bad box or label, and for no data or too much. */
export function smallName(box: string, label: string, data: Bytes): string {
  const name = `${box}/${label}.${hex(sha256(data))}`
  need(isSmall(name, data), 'format', 'that is not a small object')
  return name
}

/** The parts of a name; null for any other text. */
export function parseSmallName(name: string): SmallName | null {
  const [whole, box = '', label = '', digest = ''] = NAME.exec(name) ?? []
  return whole !== name || label.length > MOST_LABEL ? null : { box, label, digest }
}

/** Whether these bytes are the object with this name. */
export const isSmall = (name: string, data: Bytes): boolean => data.length > 0 && data.length <= MOST_SMALL_OBJECT && parseSmallName(name)?.digest === hex(sha256(data))

/** The objects of `boxes` in a list of somebody, sorted by name, with their bytes. */
export function usedSmall(shown: Iterable<readonly [name: string, size: unknown]>, boxes: readonly string[]): Map<string, number> {
  const counts = new Map(boxes.map(box => [box, 0]))
  const used = new Map<string, number>()
  // Names are ASCII.
  for (const [name, size] of [...shown].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) {
    const box = parseSmallName(name)?.box ?? ''
    const count = counts.get(box) ?? MOST_LISTED
    if (count >= MOST_LISTED || typeof size !== 'number' || !Number.isSafeInteger(size) || size < 1 || size > MOST_SMALL_OBJECT) continue
    counts.set(box, count + 1)
    used.set(name, size)
  }
  return used
}

/** Refused for what is not the name of an object, and for too many. */
export const needSmallNames = (names: readonly string[]): void => need(names.length <= SMALL_BATCH && names.every(name => parseSmallName(name) !== null), 'format', 'these are not names of small objects')

/** Refused for what is not the name of a box, and for too many. */
export const needBoxes = (boxes: readonly string[]): void => need(boxes.length <= SMALL_BATCH && boxes.every(box => BOX.test(box)), 'format', 'these are not boxes of small objects')

/** The file of an object in a shared folder (7.2), and the object of a file. */
export const smallFile = (name: string): string => `small/${name.replace('/', '.')}`
export const smallOfFile = (path: string): string => path.replace(/^small\//, '').replace('.', '/')
