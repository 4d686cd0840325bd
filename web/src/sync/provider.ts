/**
 * Whatever keeps blocks for a memory, or only serves them. It is believed nothing: blocks are checked against their CIDs, records
 * against their names; it can only withhold.
 */

import type { Bytes } from '../core/bytes.ts'

export type Block = readonly [cid: string, data: Bytes]

/** What a provider did not do now: it did not answer, or said no (`refused`). That something is not there is no error. */
export class ProviderError extends Error {
  constructor(
    readonly provider: string,
    readonly refused: boolean,
    message: string
  ) {
    super(message)
    this.name = 'ProviderError'
  }
}

/** Where blocks are read. */
export type Reader = {
  /** For people; no secret is in it. */
  readonly name: string
  /** Those of these blocks that are there, by CID. The caller checks them. */
  blocks(cids: readonly string[]): Promise<ReadonlyMap<string, Bytes>>
  /** All below a root in one answer, as far as it goes; for who has nothing of it. */
  tree?(root: string): Promise<readonly Block[]>
}

/** Where names lead. */
export type NameServer = {
  readonly name: string
  /** The record of a name; null where there is none. */
  record(name: string): Promise<Bytes | null>
  putRecord?(name: string, record: Bytes): Promise<void>
}

/** Where blocks are kept. */
export type Keeper = Reader & {
  /** Whether it takes whole trees only, and cannot say which of their blocks it has. */
  readonly takesTrees?: boolean
  /** Those of these blocks that are kept there. */
  has(cids: readonly string[]): Promise<ReadonlySet<string>>
  /** Take blocks of a root. */
  put(root: string, blocks: readonly Block[], name: string): Promise<void>
  pin(root: string, name: string): Promise<void>
  unpin(root: string, name: string): Promise<void>
}

/** In a list of pins: an entry that cannot be read. It is no CID. */
export const UNREAD = ''

/** Whatever a spec names: each part where it can do that. */
export type Provider = {
  readonly name: string
  readonly reader?: Reader
  readonly names?: NameServer
  readonly keeper?: Keeper
  /** Roots under a name, the newest first. */
  readonly pins?: (name: string) => Promise<readonly string[]>
}
