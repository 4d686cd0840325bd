/** The methods of a vault that the views use, in this page or in a worker, and its errors as refusals. */

import type { Memory } from '../memory.ts'
import { Refusal } from './client.ts'

type VaultMethod = 'read' | 'list' | 'recall' | 'conflicts' | 'timeline' | 'scopes' | 'members' | 'providers' | 'status' | 'history' | 'past' | 'context' | 'sessions' | 'session' | 'searchSessions' | 'exportSession' | 'deleteSession' | 'approveSession' | 'entities' | 'graph' | 'dreams' | 'undoDream' | 'restore' | 'write' | 'forget' | 'resolve' | 'note' | 'export' | 'exportFiles' | 'outbox'

/** The vault, here or in a worker. */
export type Behind = { readonly [K in VaultMethod]: (...args: Parameters<Memory[K]>) => ReturnType<Memory[K]> | Promise<Awaited<ReturnType<Memory[K]>>> } & {
  sync(): ReturnType<Memory['sync']>
  subscribe(heard: () => void): () => void
  onStep?(heard: (step: string) => void): () => void
  readonly device: { readonly id: string; readonly label: string }
}

const STATUS: Readonly<Record<string, number>> = { usage: 400, 'not found': 404, none: 404, changed: 412, limit: 413, member: 403, locked: 423, copied: 409, provider: 502, storage: 507 }

/** Call the vault, and convert its errors for the views. */
export async function fromVault<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Refusal) throw error
    const { kind = 'fault', hint = '', message = String(error) } = error as { kind?: string; hint?: string; message?: string }
    throw new Refusal(kind, message, hint, STATUS[kind] ?? 500)
  }
}
