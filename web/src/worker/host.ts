/** The vault in a worker: sealing, hashing and joining happen here, so that typing on the page never waits. */

import { defaultEnvironment } from '../device/device.ts'
import type { Memory } from '../memory.ts'
import { type Opened, type OpenHow, openWithPlaces, requestEntry, type Spec } from '../open.ts'
import type { Answer, Call, Failure, PageMessage } from './messages.ts'
import { type Check, checked, Helpers, type Open, openedAs } from './offloading.ts'
import { warmUp } from './warming.ts'

type Scope = { postMessage(message: Answer | PageMessage): void; onmessage: ((event: MessageEvent<Call>) => void) | null }

/** Maximum milliseconds to wait for the first list before the fetched data is stored. */
const MOST_WAIT = 1000

const failureOf = (error: Error & { kind?: string; hint?: string }): Failure => ({ kind: error.kind ?? 'fault', message: error.message, hint: error.hint ?? '' })

/** Answer a page from this worker. `another`: starts one more. */
export function serve(scope: Scope, another: () => Worker): void {
  const offloading = new Helpers(another)
  const environment = { ...defaultEnvironment, offloading }
  let opened: Opened | null = null
  let listed = (): void => undefined
  const step = (name: string): void => scope.postMessage({ step: name })
  /** The page gets the vault as soon as it can be read; later failures are reported separately. */
  const open = (how: OpenHow): Promise<unknown> =>
    new Promise((answer, refuse) => {
      let isShown = false
      const show = (one: Opened): void => {
        opened = one
        one.memory.subscribe(({ revision }) => scope.postMessage({ changed: revision }))
        answer(one.memory.device)
      }
      const shown = (one: Opened): Promise<void> => {
        isShown = true
        show(one)
        // Do nothing else here until the page has its list.
        return new Promise(done => {
          listed = () => void setTimeout(done)
          setTimeout(done, MOST_WAIT)
        })
      }
      if (how.root) offloading.start()
      openWithPlaces({ ...how, environment }, { progress: step, shown })
        .then(
          one => (isShown ? undefined : show(one)),
          error => (isShown ? scope.postMessage({ failed: failureOf(error) }) : refuse(error))
        )
        .finally(() => offloading.stop())
    })
  const run = async (call: Call): Promise<unknown> => {
    if (call.do === 'open') {
      opened?.memory.close()
      return open(call.with[0] as OpenHow)
    }
    if (call.do === 'prepare') {
      offloading.start()
      return warmUp()
    }
    if (call.do === 'check') return checked(call.with[0] as Check)
    if (call.do === 'unseal') return openedAs(call.with[0] as Open)
    if (call.do === 'request') return requestEntry(call.with[0] as Parameters<typeof requestEntry>[0])
    if (opened === null) throw Object.assign(new Error('the memory is not open'), { kind: 'locked', hint: 'Open it first.' })
    const { memory } = opened
    if (call.do === 'keptPlaces') return opened.places()
    if (call.do === 'setPlaces') return opened.setPlaces(call.with[0] as readonly Spec[])
    if (call.do === 'sync') return memory.sync({ ...((call.with[0] ?? {}) as object), progress: step })
    const method = memory[call.do as keyof Memory]
    if (typeof method !== 'function' || call.do === 'subscribe' || call.do === 'use') throw new Error(`there is no ${call.do}`)
    return (method as (...args: readonly unknown[]) => unknown).apply(memory, call.with as unknown[])
  }
  scope.onmessage = ({ data }) =>
    void run(data)
      .then(
        answer => scope.postMessage({ id: data.id, answer }),
        (error: Error) => scope.postMessage({ id: data.id, error: failureOf(error) })
      )
      .finally(() => (data.do === 'list' ? listed() : undefined))
}
