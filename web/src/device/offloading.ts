/**
 * Work on its arguments alone that large vaults have much of: checking signatures and opening objects. Other threads may do it; here this
 * one does.
 */

import type { Bytes } from '../core/bytes.ts'
import { checkAll, type CheckAll } from '../core/curves.ts'
import { openHere, type SealedObject } from '../core/sealed.ts'
import { bodyHash } from '../core/views.ts'

/** An opened object, and its SHA-256 in hex. */
export type Opened = { readonly data: Bytes; readonly hash: string }

export type Offloading = {
  readonly checkAll: CheckAll
  /** Open each object, in order; null for one that does not open. */
  readonly openAll: (all: readonly SealedObject[]) => Promise<readonly (Opened | null)[]>
}

export function opened(sealed: SealedObject): Opened | null {
  const data = openHere(sealed)
  return data && { data, hash: bodyHash(data) }
}

export const onThisThread: Offloading = { checkAll, openAll: async all => all.map(opened) }
