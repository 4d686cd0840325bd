/** Requests to providers: one function with a time limit and readable errors. `fetch` is passed in. */

import type { Bytes } from '../core/bytes.ts'
import { ProviderError } from './provider.ts'

export type Fetch = (url: string, init?: RequestInit) => Promise<Response>

/** Milliseconds of silence after which a provider is unavailable. */
const SILENT_MS = 60_000
/** Maximum bytes of an answer. */
const MOST_ANSWER = 512 << 20
/** Maximum bytes of a text answer. */
const MOST_TEXT = 8 << 20
/** Maximum bytes read of a server's error text. */
const MOST_SAID = 4096

export type RequestOptions = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Bytes | string | FormData
  /** Statuses that are answers, not errors. */
  readonly allow?: readonly number[]
  /** For the text of an error: `store blocks`. */
  readonly what: string
}

export class Http {
  constructor(
    readonly name: string,
    readonly fetch: Fetch,
    readonly headers: Readonly<Record<string, string>> = {}
  ) {}

  async ask(url: string, { method = 'GET', headers = {}, body, allow = [], what }: RequestOptions): Promise<Response> {
    const sent = { ...this.headers, ...headers }
    let response: Response
    try {
      response = await this.fetch(url, {
        method,
        headers: sent,
        ...(body === undefined ? {} : { body: body as BodyInit }),
        signal: AbortSignal.timeout(SILENT_MS),
        credentials: 'omit',
        cache: 'no-store',
        // A token is sent only to the address for which it was given.
        redirect: 'Authorization' in sent ? 'error' : 'follow',
        referrerPolicy: 'no-referrer'
      })
    } catch (error) {
      throw new ProviderError(this.name, false, `${this.name} did not answer when asked to ${what} (${error instanceof Error ? error.message : error})`)
    }
    if (response.ok || allow.includes(response.status)) return response
    const said = await this.beginning(response).then(
      text => text.slice(0, 200).replace(/\s+/g, ' '),
      () => ''
    )
    const refused = response.status < 500 && response.status !== 408 && response.status !== 429
    throw new ProviderError(this.name, refused, `${this.name} answered ${response.status} when asked to ${what}${said === '' ? '' : `: ${said}`}`)
  }

  /** Read the bytes of an answer, up to the limit, whatever length the server states. */
  async bytes(response: Response, most = MOST_ANSWER): Promise<Bytes> {
    const isTooLong = Number(response.headers.get('Content-Length') ?? 0) > most
    const { data, isWhole } = await this.#upTo(response, isTooLong ? 0 : most)
    if (!isWhole) throw new ProviderError(this.name, true, `${this.name} sends more than was asked for`)
    return data
  }

  /** Read a text answer. */
  async text(response: Response): Promise<string> {
    return new TextDecoder().decode(await this.bytes(response, MOST_TEXT))
  }

  /** Read the beginning of a text answer. */
  async beginning(response: Response): Promise<string> {
    return new TextDecoder().decode((await this.#upTo(response, MOST_SAID)).data)
  }

  /** Read up to so many bytes of an answer, and tell whether that is all; the rest is not waited for. */
  async #upTo(response: Response, most: number): Promise<{ data: Bytes; isWhole: boolean }> {
    const parts: Bytes[] = []
    let size = 0
    let isWhole = true
    try {
      const reader = response.body?.getReader()
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
        parts.push(next.value)
        size += next.value.length
        if (size <= most) continue
        isWhole = false
        void reader?.cancel().catch(() => undefined)
        break
      }
    } catch (error) {
      throw new ProviderError(this.name, false, `${this.name} broke off (${error instanceof Error ? error.message : error})`)
    }
    const data = new Uint8Array(size)
    let at = 0
    for (const part of parts) {
      data.set(part, at)
      at += part.length
    }
    return { data, isWhole }
  }
}
