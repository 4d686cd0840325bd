/** Requests to providers: one way to ask, with an end to waiting, and errors in words. The function that asks is passed in. */

import type { Bytes } from '../core/bytes.ts'
import { ProviderError } from './provider.ts'

export type Fetch = (url: string, init?: RequestInit) => Promise<Response>

/** A provider that is silent for so long is not there. */
const SILENT_MS = 60_000
/** Bytes of an answer. */
const MOST_ANSWER = 512 << 20
/** Bytes of an answer in words. */
const MOST_TEXT = 8 << 20
/** Bytes that are looked at of what a server says beside the matter. */
const MOST_SAID = 4096

export type Asked = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Bytes | string | FormData
  /** Statuses that are answers and no errors. */
  readonly allow?: readonly number[]
  /** For the words of an error: `store blocks`. */
  readonly what: string
}

export class Http {
  constructor(
    readonly name: string,
    readonly fetch: Fetch,
    readonly headers: Readonly<Record<string, string>> = {}
  ) {}

  async ask(url: string, { method = 'GET', headers = {}, body, allow = [], what }: Asked): Promise<Response> {
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
        // A token goes to the address that it was given for, and nowhere else.
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

  /** The bytes of an answer. No more of it is taken than may come, whatever the server says of its length. */
  async bytes(response: Response, most = MOST_ANSWER): Promise<Bytes> {
    const isTooLong = Number(response.headers.get('Content-Length') ?? 0) > most
    const { data, isWhole } = await this.#upTo(response, isTooLong ? 0 : most)
    if (!isWhole) throw new ProviderError(this.name, true, `${this.name} sends more than was asked for`)
    return data
  }

  /** An answer in words. */
  async text(response: Response): Promise<string> {
    return new TextDecoder().decode(await this.bytes(response, MOST_TEXT))
  }

  /** The beginning of an answer in words, however long it is. */
  async beginning(response: Response): Promise<string> {
    return new TextDecoder().decode((await this.#upTo(response, MOST_SAID)).data)
  }

  /** Up to so many bytes of an answer, and whether that is all of it; what follows is not waited for. */
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
