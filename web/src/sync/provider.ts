/**
 * The contract of a provider, which stores blocks for a vault or only serves them. It is not trusted: blocks are checked against their
 * CIDs, records against their names; it can only withhold.
 */

import type { Bytes } from '../core/bytes.ts'

export type Block = readonly [cid: string, data: Bytes]

/** A failed request to a provider: no answer, or a refusal (`refused`). An absent block is not an error. */
export class ProviderError extends Error {
  constructor(
    readonly provider: string,
    readonly refused: boolean,
    message: string,
    /** Blocks that were received although others could not be: the reader is asked for further ones. */
    readonly found?: ReadonlyMap<string, Bytes>
  ) {
    super(message)
    this.name = 'ProviderError'
  }
}

/** Reads blocks. */
export type Reader = {
  /** For people; contains no secret. */
  readonly name: string
  /** Return those of these blocks that exist, by CID. The caller checks them. */
  blocks(cids: readonly string[]): Promise<ReadonlyMap<string, Bytes>>
  /** Return everything below a root in one answer, as far as it goes; for a caller that has nothing of it. */
  tree?(root: string): Promise<readonly Block[]>
}

/** Resolves names. */
export type NameServer = {
  readonly name: string
  /** Return the record of a name; null if absent. `say` is told what could not be read beside it. */
  record(name: string, say: (text: string) => void): Promise<Bytes | null>
  putRecord?(name: string, record: Bytes): Promise<void>
}

/** Stores blocks. */
export type BlockStore = Reader & {
  /** Whether it accepts whole trees only, and cannot tell which of their blocks it has. */
  readonly takesTrees?: boolean
  /** Return those of these blocks that are stored there. */
  has(cids: readonly string[]): Promise<ReadonlySet<string>>
  /** Store blocks of a root. */
  put(root: string, blocks: readonly Block[], name: string): Promise<void>
  pin(root: string, name: string): Promise<void>
}

/** Keeps small objects outside of trees (core/small_objects.ts). A name proves its content, and nothing about its author. */
export type SmallArea = {
  /** Return the objects in these boxes with their bytes, at most SMALL_BATCH boxes; a listed one may be gone or damaged. */
  list(boxes: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Return those of at most SMALL_BATCH objects that exist and are sound. */
  get(names: readonly string[]): Promise<ReadonlyMap<string, Bytes>>
  /** Store an object. Refused if these are not the bytes of its name. */
  put(name: string, data: Bytes): Promise<void>
  /** Remove objects; absent ones are ignored. */
  remove(names: readonly string[]): Promise<void>
}

/** In a list of pins: an unreadable entry. It is not a CID. */
export const UNREAD = ''

/** A provider of any spec: each part if it has that capability. */
export type Provider = {
  readonly name: string
  readonly reader?: Reader
  readonly names?: NameServer
  readonly store?: BlockStore
  /** Roots under a name, newest first. */
  readonly pins?: (name: string) => Promise<readonly string[]>
  readonly small?: SmallArea
}
