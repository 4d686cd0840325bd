/** Work that needs nothing but what it is given, of which a memory of thousands has much: signatures to check, and objects to open. It may be done beside this thread; here it is done on it. */

import type { Bytes } from '../core/bytes.ts'
import { checkAll, type CheckAll } from '../core/curves.ts'
import { openHere, type SealedObject } from '../core/sealed.ts'
import { bodyHash } from '../core/views.ts'

/** What an object opens to, and its SHA-256 in hex. */
export type Opened = { readonly data: Bytes; readonly hash: string }

export type Beside = {
  readonly checkAll: CheckAll
  /** What each opens to, in their order; null of what does not open. */
  readonly openAll: (all: readonly SealedObject[]) => Promise<readonly (Opened | null)[]>
}

export function opened(sealed: SealedObject): Opened | null {
  const data = openHere(sealed)
  return data && { data, hash: bodyHash(data) }
}

export const onThisThread: Beside = { checkAll, openAll: async all => all.map(opened) }
