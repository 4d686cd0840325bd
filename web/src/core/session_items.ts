/**
 * The items of one session from its parts, in order (FORMAT.md 5.1).
 *
 * Independent of entries and siblings: the caller decides which parts are valid.
 */

import { type Bytes, isObject, isWhole } from './bytes.ts'
import { fieldOf, parseFile } from './memory_file.ts'
import { sessionToken } from './sessions.ts'

const DEVICE = /^[0-9a-f]{16}$/
/** The position of an item: its time, its device, its number among those added together. */
export type Place = readonly [at: number, device: string, n: number]
export type Placed = { readonly place: Place; readonly item: object }

/** Maximum nesting of a line, and of an item of pieces: every reader can parse that. */
const MOST_NESTED = 512

/** Tell whether JSON nests too deeply. */
function isTooDeep(text: string): boolean {
  if (text.length <= MOST_NESTED) return false
  let [depth, isInText] = [0, false]
  for (let at = 0; at < text.length; at++) {
    const letter = text[at]
    if (isInText && letter === '\\') at++
    else if (letter === '"') isInText = !isInText
    else if (!isInText && (letter === '{' || letter === '[')) depth++
    else if (!isInText && (letter === '}' || letter === ']')) depth--
    if (depth > MOST_NESTED) return true
  }
  return false
}

function parsed(text: string): unknown {
  try {
    return isTooDeep(text) ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

export type Line = { at: number; n: number } & ({ item: object } | { gone: Place } | { piece: [number, number]; text: string })

/** Parse a line of a part, null for one without meaning. A null field is absent. */
export function lineOf(text: string): Line | null {
  const it = parsed(text)
  if (!isObject(it) || !isWhole(it.at) || !isWhole(it.n ?? 0)) return null
  const at = it.at
  const [item, gone, piece, share] = [it.item, it.gone, it.piece, it.text].map(one => one ?? undefined)
  if ([item, gone, piece].filter(one => one !== undefined).length !== 1 || (piece === undefined) !== (share === undefined)) return null
  const n = (it.n ?? 0) as number
  if (item !== undefined) return isObject(item) ? { at, n, item } : null
  if (gone !== undefined) {
    const isPlace = Array.isArray(gone) && gone.length === 3 && isWhole(gone[0]) && typeof gone[1] === 'string' && DEVICE.test(gone[1]) && isWhole(gone[2])
    return isPlace ? { at, n, gone: gone as unknown as Place } : null
  }
  const [number, many] = Array.isArray(piece) && piece.length === 2 && piece.every(isWhole) ? (piece as [number, number]) : [0, 0]
  return number < many && typeof share === 'string' ? { at, n, piece: [number, many], text: share } : null
}

const nameOf = (place: Place): string => place.join(' ')

/** The form of the keys of a session's parts; its group is the device that writes it. */
export const partsOf = (session: string): RegExp => new RegExp(`^session-${sessionToken(session)}-([0-9a-f]{16})-(?:0|[1-9][0-9]{0,5})$`)

/** The items of a session, from its parts by key. */
export const sessionItems = (session: string, parts: readonly { key: string; file: Bytes }[]): object[] => partItems(session, parts).map(one => one.item)

/** The same, each with its position. */
export function partItems(session: string, parts: readonly { key: string; file: Bytes }[]): Placed[] {
  const form = partsOf(session)
  const ours = parts.flatMap(({ key, file }) => {
    const device = form.exec(key)?.[1]
    const read = parseFile(file)
    return device === undefined || fieldOf(read, 'session') !== session ? [] : [{ device, lines: read.body.split('\n').flatMap(text => lineOf(text) ?? []) }]
  })
  return placedItems(ours)
}

/** Order the items of several devices' lines, without removed ones. */
export function placedItems(parts: readonly { readonly device: string; readonly lines: readonly Line[] }[]): Placed[] {
  const found = new Map<string, Placed>()
  const pieces = new Map<string, { place: Place; many: number; texts: Map<number, string> }>()
  const gone = new Set<string>()
  for (const { device, lines } of parts) {
    for (const line of lines) {
      const place: Place = [line.at, device, line.n]
      if ('gone' in line) gone.add(nameOf(line.gone))
      else if ('item' in line) found.set(nameOf(place), { place, item: line.item })
      else {
        const [number, many] = line.piece
        const held = `${nameOf(place)} ${many}`
        const one = pieces.get(held) ?? { place, many, texts: new Map<number, string>() }
        one.texts.set(number, line.text)
        pieces.set(held, one)
      }
    }
  }
  for (const { place, many, texts } of pieces.values()) {
    if (texts.size !== many) continue
    const item = parsed([...texts].sort(([a], [b]) => a - b).map(([, text]) => text).join(''))
    if (isObject(item)) found.set(nameOf(place), { place, item })
  }
  return [...found]
    .filter(([name]) => !gone.has(name))
    .map(([, one]) => one)
    .sort(({ place: [a, b, c] }, { place: [x, y, z] }) => a - x || (b < y ? -1 : b > y ? 1 : c - z))
}
