/** The vault as a page uses it: the same methods, each a promise, answered by a worker. */

import { MemoryError, type ErrorKind } from '../device/errors.ts'
import type { Change, Memory } from '../memory.ts'
import type { OpenHow, requestEntry, Spec } from '../open.ts'
import type { Answer, Call, PageMessage } from './messages.ts'

type Methods = 'read' | 'list' | 'recall' | 'why' | 'context' | 'history' | 'past' | 'restore' | 'conflicts' | 'sessions' | 'session' | 'searchSessions' | 'exportSession' | 'deleteSession' | 'approveSession' | 'entities' | 'graph' | 'dreams' | 'undoDream' | 'timeline' | 'scopes' | 'members' | 'providers' | 'status' | 'index' | 'write' | 'writeText' | 'forget' | 'resolve' | 'approve' | 'promote' | 'note' | 'export' | 'import' | 'exportFiles' | 'importFiles' | 'outbox' | 'pointer' | 'readRequest' | 'admit' | 'close'

/** `Memory` with promises as results. */
export type RemoteMemory = {
  readonly [K in Methods]: (...args: Parameters<Memory[K]>) => Promise<Awaited<ReturnType<Memory[K]>>>
} & {
  sync(how?: Omit<NonNullable<Parameters<Memory['sync']>[0]>, 'progress'>): ReturnType<Memory['sync']>
  subscribe(heard: (change: Change) => void): () => void
  /** Subscribe to the steps of a sync. */
  onStep(heard: (step: string) => void): () => void
  /** Resolves when the data shown on opening could not be stored: this vault must not be used any more. */
  readonly lost: Promise<MemoryError>
  /** The providers stored in this browser, with their tokens, and setting them. */
  keptPlaces(): Promise<readonly Spec[]>
  setPlaces(places: readonly Spec[]): Promise<void>
  readonly device: { readonly id: string; readonly label: string }
}

export type Port = Pick<Worker, 'postMessage' | 'terminate'> & { onmessage: ((event: MessageEvent<Answer | PageMessage>) => void) | null }

type Wire = { readonly ask: (method: string, args: readonly unknown[]) => Promise<unknown>; readonly heard: Set<(change: Change) => void>; readonly steps: Set<(step: string) => void>; readonly lost: Promise<MemoryError> }

export function wired(worker: Port): Wire {
  const waiting = new Map<number, { done: (answer: unknown) => void; failed: (error: Error) => void }>()
  const heard = new Set<(change: Change) => void>()
  const steps = new Set<(step: string) => void>()
  let last = 0
  let lose = (_: MemoryError): void => undefined
  const lost = new Promise<MemoryError>(done => (lose = done))
  worker.onmessage = ({ data }) => {
    if ('changed' in data) for (const one of heard) one({ revision: data.changed })
    else if ('step' in data) for (const one of steps) one(data.step)
    else if ('failed' in data) lose(errorOf(data.failed))
    else {
      const call = waiting.get(data.id)
      waiting.delete(data.id)
      if (data.error === undefined) call?.done(data.answer)
      else call?.failed(errorOf(data.error))
    }
  }
  const ask = (method: string, args: readonly unknown[]): Promise<unknown> =>
    new Promise((done, failed) => {
      const id = ++last
      waiting.set(id, { done, failed })
      worker.postMessage({ id, do: method, with: args } satisfies Call)
    })
  return { ask, heard, steps, lost }
}

const errorOf = ({ kind, message, hint }: { kind: string; message: string; hint: string }): MemoryError => new MemoryError(kind as ErrorKind, message, hint)

/** Return this browser's request to be added by a device that has the wallet; its keys are made in a worker. */
export const requestRemote = (worker: Port, how: Parameters<typeof requestEntry>[0]): ReturnType<typeof requestEntry> =>
  wired(worker).ask('request', [how]) as ReturnType<typeof requestEntry>

/** Open a vault in a worker. */
export async function openRemote(worker: Port, how: OpenHow): Promise<RemoteMemory> {
  const { ask, heard, steps, lost } = wired(worker)
  const device = (await ask('open', [how])) as RemoteMemory['device']
  const listen = <T>(all: Set<T>, one: T): (() => void) => {
    all.add(one)
    return () => void all.delete(one)
  }
  const own = {
    device,
    lost,
    subscribe: (one: (change: Change) => void) => listen(heard, one),
    onStep: (one: (step: string) => void) => listen(steps, one),
    close: async () => {
      await ask('close', [])
      worker.terminate()
    }
  }
  // Not a promise: `await` asks every object for `then`.
  return new Proxy(own, {
    get: (target, name) => (name in target || typeof name !== 'string' || name === 'then' ? Reflect.get(target, name) : (...args: unknown[]) => ask(name, args))
  }) as unknown as RemoteMemory
}
