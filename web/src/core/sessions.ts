/**
 * Sessions: the token of a name, and the items that the parts of one session come to, in order (FORMAT.md 5.1).
 *
 * Knows nothing of entries and siblings: whose parts count is decided before.
 */

import { type Bytes, hex, isObject, isWhole, need, sha256, unlessRefused } from './bytes.ts'
import { fieldOf, parseFile } from './memory_file.ts'

const UNFIT = /[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]/
const DEVICE = /^[0-9a-f]{16}$/
type Place = readonly [at: number, device: string, n: number]

export function sessionToken(session: string): string {
  const length = [...session].length
  need(session.isWellFormed() && length >= 1 && length <= 256 && !UNFIT.test(session), 'format', 'not the name of a session')
  if (/^[a-z0-9][a-z0-9_]{0,23}$(?![^])/.test(session)) return session
  const words = session.toLowerCase().replace(/[^a-z0-9]+/g, '_').replace(/^_+|_+$/g, '')
  return `${words.slice(0, 15).replace(/_+$/, '') || 'x'}-${hex(sha256(session)).slice(0, 16)}`
}

/** Whether what stands under a key is a part of a session. `type`, `session`: fields of its header. */
export function isSessionPart(key: string, type: string, session: string): boolean {
  const token = /^session-(.+)-[0-9a-f]{16}-(?:0|[1-9][0-9]{0,5})$(?![^])/.exec(key)?.[1]
  return type === 'session' && token !== undefined && unlessRefused(() => sessionToken(session)) === token
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Line = { at: number; n: number } & ({ item: object } | { gone: Place } | { piece: [number, number]; text: string })

/** A line of a part, null for what means nothing. */
function lineOf(text: string): Line | null {
  const it = parsed(text)
  if (!isObject(it) || !isWhole(it.at) || !isWhole(it.n ?? 0)) return null
  const { at, item, gone, piece, text: share } = it
  if ([item, gone, piece].filter(one => one !== undefined).length !== 1 || (piece === undefined) !== (share === undefined)) return null
  const n = (it.n ?? 0) as number
  if (item !== undefined) return isObject(item) ? { at, n, item } : null
  if (gone !== undefined) {
    const isPlace = Array.isArray(gone) && gone.length === 3 && isWhole(gone[0]) && DEVICE.test(String(gone[1])) && isWhole(gone[2])
    return isPlace ? { at, n, gone: gone as unknown as Place } : null
  }
  const [number, many] = Array.isArray(piece) && piece.length === 2 && piece.every(isWhole) ? (piece as [number, number]) : [0, 0]
  return number < many && typeof share === 'string' ? { at, n, piece: [number, many], text: share } : null
}

const nameOf = (place: Place): string => place.join(' ')

/** The items of a session, of parts by their keys. */
export function sessionItems(session: string, parts: readonly { key: string; file: Bytes }[]): object[] {
  const form = new RegExp(`^session-${sessionToken(session)}-([0-9a-f]{16})-(?:0|[1-9][0-9]{0,5})$`)
  const found = new Map<string, { place: Place; item: object }>()
  const pieces = new Map<string, { place: Place; many: number; texts: Map<number, string> }>()
  const gone = new Set<string>()
  for (const { key, file } of parts) {
    const device = form.exec(key)?.[1]
    const read = parseFile(file)
    if (device === undefined || fieldOf(read, 'session') !== session) continue
    for (const line of read.body.split('\n').map(lineOf)) {
      if (line === null) continue
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
    .map(one => one.item)
}
