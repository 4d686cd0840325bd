// Sessions: the token of a name, and the items that the parts of one session come to, in order (FORMAT.md 5.1).
// Knows nothing of entries and siblings: whose parts count is decided before.

import { hex, need, sha256 } from './bytes.mjs'
import { parseFile } from './files.mjs'

const UNFIT = /[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/
const DEVICE = /^[0-9a-f]{16}$/
const whole = value => Number.isSafeInteger(value) && value >= 0
const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value)

export function tokenOf(session) {
  const length = [...session].length
  need(length >= 1 && length <= 256 && !UNFIT.test(session), 'format', 'not the name of a session')
  if (/^[a-z0-9][a-z0-9_]{0,23}$/.test(session)) return session
  const slug = session.toLowerCase().replace(/[^a-z0-9]+/g, '_').replace(/^_+|_+$/g, '').slice(0, 15).replace(/_+$/, '') || 'x'
  return `${slug}-${hex(sha256(session)).slice(0, 16)}`
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A line of a part, null for what means nothing. */
function lineOf(text) {
  const it = parsed(text)
  if (!isObject(it) || !whole(it.at) || !whole(it.n ?? 0)) return null
  const { item, gone, piece, text: part } = it
  if ([item, gone, piece].filter(one => one !== undefined).length !== 1 || (piece === undefined) !== (part === undefined)) return null
  if (item !== undefined && !isObject(item)) return null
  if (gone !== undefined && !(Array.isArray(gone) && gone.length === 3 && whole(gone[0]) && DEVICE.test(gone[1]) && whole(gone[2]))) return null
  if (piece !== undefined && !(Array.isArray(piece) && piece.length === 2 && piece.every(whole) && piece[0] < piece[1] && typeof part === 'string')) return null
  return { ...it, n: it.n ?? 0 }
}

/** The items of a session, of `parts` with `key` and `file`. */
export function itemsOf(session, parts) {
  const form = new RegExp(`^session-${tokenOf(session)}-([0-9a-f]{16})-(?:0|[1-9][0-9]{0,5})$`)
  const found = new Map()
  const pieces = new Map()
  const gone = new Set()
  const name = (at, dev, n) => `${at} ${dev} ${n}`
  for (const { key, file } of parts) {
    const dev = form.exec(key)?.[1]
    const { fields, body } = parseFile(Buffer.from(file))
    if (dev === undefined || new Map(fields).get('session') !== session) continue
    for (const line of body.split('\n').map(lineOf).filter(Boolean)) {
      const place = [line.at, dev, line.n]
      if (line.gone) gone.add(name(...line.gone))
      else if (line.item) found.set(name(...place), { place, item: line.item })
      else {
        const held = `${name(...place)} ${line.piece[1]}`
        if (!pieces.has(held)) pieces.set(held, { place, many: line.piece[1], texts: new Map() })
        pieces.get(held).texts.set(line.piece[0], line.text)
      }
    }
  }
  for (const { place, many, texts } of pieces.values()) {
    const item = texts.size === many ? parsed([...Array(many).keys()].map(i => texts.get(i)).join('')) : undefined
    if (isObject(item)) found.set(name(...place), { place, item })
  }
  const order = ([a, b, c], [x, y, z]) => a - x || (b < y ? -1 : b > y ? 1 : c - z)
  return [...found].filter(([key]) => !gone.has(key)).map(([, one]) => one).sort((a, b) => order(a.place, b.place)).map(one => one.item)
}
