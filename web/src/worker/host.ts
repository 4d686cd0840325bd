/** The memory in a worker: sealing, hashing and joining happen here, so that typing on the page never waits for them. */

import type { Memory } from '../memory.ts'
import { type Opened, type OpenHow, openWithPlaces, requestEntry, type Spec } from '../open.ts'

/** What a page sends, and what comes back. */
export type Call = { readonly id: number; readonly do: string; readonly with: readonly unknown[] }
export type Answer = { readonly id: number; readonly answer?: unknown; readonly error?: { kind: string; message: string; hint: string } }
export type Told = { readonly changed: number } | { readonly step: string }

type Scope = { postMessage(message: Answer | Told): void; onmessage: ((event: MessageEvent<Call>) => void) | null }

/** Answer a page from this worker. */
export function serve(scope: Scope): void {
  let opened: Opened | null = null
  const run = async (call: Call): Promise<unknown> => {
    if (call.do === 'open') {
      opened?.memory.close()
      opened = await openWithPlaces(call.with[0] as OpenHow)
      const { memory } = opened
      memory.subscribe(({ revision }) => scope.postMessage({ changed: revision }))
      return memory.device
    }
    if (call.do === 'request') return requestEntry(call.with[0] as Parameters<typeof requestEntry>[0])
    if (opened === null) throw Object.assign(new Error('the memory is not open'), { kind: 'locked', hint: 'Open it first.' })
    const { memory } = opened
    if (call.do === 'keptPlaces') return opened.places()
    if (call.do === 'setPlaces') return opened.setPlaces(call.with[0] as readonly Spec[])
    if (call.do === 'sync') {
      const how = (call.with[0] ?? {}) as object
      return memory.sync({ ...how, progress: step => scope.postMessage({ step }) })
    }
    const method = memory[call.do as keyof Memory]
    if (typeof method !== 'function' || call.do === 'subscribe' || call.do === 'use') throw new Error(`there is no ${call.do}`)
    return (method as (...given: readonly unknown[]) => unknown).apply(memory, call.with as unknown[])
  }
  scope.onmessage = ({ data }) =>
    void run(data).then(
      answer => scope.postMessage({ id: data.id, answer }),
      (error: Error & { kind?: string; hint?: string }) =>
        scope.postMessage({ id: data.id, error: { kind: error.kind ?? 'fault', message: error.message, hint: error.hint ?? '' } })
    )
}
