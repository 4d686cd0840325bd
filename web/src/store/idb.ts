/** Storage of a vault in IndexedDB: Web Locks for exclusive work in all tabs and workers, a BroadcastChannel only as a signal. */

import { type DBSchema, deleteDB, type IDBPDatabase, openDB } from 'idb'
import type { Bytes } from '../core/bytes.ts'
import { MemoryError } from '../device/errors.ts'
import type { Block } from '../sync/provider.ts'
import type { Exclusive, DeviceStorage, Loaded } from './device_storage.ts'

type Counters = { readonly revision: number; readonly snapshotAt: number }

interface Tables extends DBSchema {
  /** `counters` (numbers) and `snapshot` (sealed bytes). */
  heads: { key: string; value: Counters | Bytes }
  /** Sealed changes by their number. */
  changes: { key: number; value: Bytes }
  blocks: { key: string; value: Bytes }
  /** Keys of this device (`browser_keys.ts`): objects that no script can read, and sealed bytes. */
  keys: { key: string; value: unknown }
}

export type Database = IDBPDatabase<Tables>

/** `name`: the vault's name in this origin. */
export const openDatabase = (name: string): Promise<Database> =>
  openDB<Tables>(`ipfsmem/${name}`, 1, {
    upgrade(db) {
      for (const table of ['heads', 'changes', 'blocks', 'keys'] as const) db.createObjectStore(table)
    },
    // Another tab has a newer program: it must not wait for this one.
    blocking: (_, __, event) => (event.target as IDBDatabase).close()
  })

/** Delete a vault of this origin with its keys; other tabs close theirs. */
export const deleteKept = (name: string): Promise<void> => deleteDB(`ipfsmem/${name}`)

/** Maximum number of blocks that are requested one by one. */
const FEW = 64

const NONE: Counters = { revision: 0, snapshotAt: 0 }

/** Tell whether a vault is stored here, and not only the keys of a device that found none. */
export const isKept = async (db: Database): Promise<boolean> => (((await db.get('heads', 'counters')) as Counters | undefined) ?? NONE).revision > 0
/** A view would keep the whole larger buffer: copy it. */
const own = (data: Bytes): Bytes => (data.byteLength === data.buffer.byteLength ? data : data.slice())

/** Return an error about the browser's storage for people; any other error unchanged. */
function said(error: unknown): unknown {
  const name = error instanceof DOMException ? error.name : ''
  if (name === 'QuotaExceededError') return new MemoryError('storage', 'this browser has no storage left, so nothing was written', 'Free space on this disk, or sync and clear the data of other pages.')
  if (name === 'InvalidStateError' || name === 'NotFoundError') return new MemoryError('storage', 'this browser deleted the data of this vault, so nothing was written', 'Load the page again: synced texts come back with your wallet or recovery phrase.')
  return error
}

async function kept<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw said(error)
  }
}

export class BrowserStorage implements DeviceStorage {
  readonly #bell: BroadcastChannel
  readonly #listeners = new Set<() => void>()

  constructor(
    readonly db: Database,
    readonly name: string
  ) {
    this.#bell = new BroadcastChannel(`ipfsmem/${name}`)
    this.#bell.onmessage = () => {
      for (const heard of this.#listeners) heard()
    }
  }

  exclusively<T>(name: Exclusive, work: () => Promise<T>): Promise<T> {
    return navigator.locks.request(`ipfsmem/${this.name}/${name}`, work) as Promise<T>
  }

  load(since: number): Promise<Loaded> {
    return kept(() => this.#load(since))
  }

  async #load(since: number): Promise<Loaded> {
    const tx = this.db.transaction(['heads', 'changes'])
    const { revision, snapshotAt } = ((await tx.objectStore('heads').get('counters')) as Counters | undefined) ?? NONE
    const isBehind = since < snapshotAt
    const snapshot = isBehind ? ((await tx.objectStore('heads').get('snapshot')) as Bytes) : null
    const from = isBehind ? snapshotAt : since
    const changes = revision > from ? await tx.objectStore('changes').getAll(IDBKeyRange.lowerBound(from, true)) : []
    await tx.done
    return { revision, snapshot, changes }
  }

  append(change: Bytes, blocks: readonly Block[]): Promise<number> {
    return kept(() => this.#append(change, blocks))
  }

  async #append(change: Bytes, blocks: readonly Block[]): Promise<number> {
    const tx = this.db.transaction(['heads', 'changes', 'blocks'], 'readwrite', { durability: 'strict' })
    const { revision, snapshotAt } = ((await tx.objectStore('heads').get('counters')) as Counters | undefined) ?? NONE
    const next = revision + 1
    for (const [cid, data] of blocks) void tx.objectStore('blocks').put(own(data), cid)
    void tx.objectStore('changes').put(own(change), next)
    void tx.objectStore('heads').put({ revision: next, snapshotAt }, 'counters')
    await tx.done
    this.#bell.postMessage(next)
    return next
  }

  replace(snapshot: Bytes, blocks: readonly Block[], gone: readonly string[]): Promise<number> {
    return kept(() => this.#replace(snapshot, blocks, gone))
  }

  async #replace(snapshot: Bytes, blocks: readonly Block[], gone: readonly string[]): Promise<number> {
    const tx = this.db.transaction(['heads', 'changes', 'blocks'], 'readwrite', { durability: 'strict' })
    const { revision } = ((await tx.objectStore('heads').get('counters')) as Counters | undefined) ?? NONE
    const next = revision + 1
    for (const [cid, data] of blocks) void tx.objectStore('blocks').put(own(data), cid)
    for (const cid of gone) void tx.objectStore('blocks').delete(cid)
    void tx.objectStore('changes').clear()
    void tx.objectStore('heads').put(own(snapshot), 'snapshot')
    void tx.objectStore('heads').put({ revision: next, snapshotAt: next }, 'counters')
    await tx.done
    this.#bell.postMessage(next)
    return next
  }

  cids(): Promise<readonly string[]> {
    return kept(() => this.db.getAllKeys('blocks'))
  }

  blocks(cids: readonly string[]): Promise<readonly Block[]> {
    return kept(() => this.#blocks(cids))
  }

  async #blocks(cids: readonly string[]): Promise<readonly Block[]> {
    const tx = this.db.transaction('blocks')
    // Reading many at once takes a fraction of the time of reading each.
    if (cids.length > FEW) {
      const [names, all] = await Promise.all([tx.store.getAllKeys(), tx.store.getAll()])
      const wanted = new Set(cids)
      return names.flatMap((cid, i): Block[] => (wanted.has(cid) ? [[cid, all[i] as Bytes]] : []))
    }
    const found = await Promise.all(cids.map(cid => tx.store.get(cid)))
    await tx.done
    return cids.flatMap((cid, i): Block[] => (found[i] === undefined ? [] : [[cid, found[i] as Bytes]]))
  }

  listen(heard: () => void): () => void {
    this.#listeners.add(heard)
    return () => void this.#listeners.delete(heard)
  }

  close(): void {
    this.#bell.close()
    this.db.close()
  }
}
