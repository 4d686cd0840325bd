/** A pointer to a vault, as text for another device: public keys and addresses, no secret. */

import { base64url, fields, fromBase64url, fromUtf8, isHex, need, parseCanonical, unlessRefused, utf8, canonical } from './core/bytes.ts'
import { MemoryError } from './device/errors.ts'
import type { Pointer } from './sync/syncing.ts'

const START = 'ipfsmem:memory:'
const MOST = 4096
const MOST_PLACES = 16

/** A vault, and providers that may have it, without tokens. */
export type Whereabouts = Pointer & { readonly at: readonly string[] }

export const textOfPointer = ({ vault, anchor, at }: Whereabouts): string => START + base64url(utf8(canonical({ anchor, at, v: 1, vault })))

/** `MemoryError` for anything else. */
export function pointerOf(text: string): Whereabouts {
  const trimmed = text.trim()
  const found = unlessRefused(() => {
    need(trimmed.startsWith(START) && trimmed.length <= MOST, 'format')
    const said = fields(parseCanonical(fromUtf8(fromBase64url(trimmed.slice(START.length)))), ['anchor', 'at', 'v', 'vault'])
    const { at } = said
    need(said.v === 1 && isHex(said.vault, 16) && isHex(said.anchor, 32), 'format')
    need(Array.isArray(at) && at.length <= MOST_PLACES && at.every(one => typeof one === 'string' && one.length <= 512), 'format')
    return { vault: said.vault, anchor: said.anchor, at: at as string[] }
  })
  if (found === null) throw new MemoryError('usage', 'not a link to a vault', `It begins with ${START}; a device that has the vault shows it under This browser.`)
  return found
}
