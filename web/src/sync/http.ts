/** Requests to providers: one way to ask, with an end to waiting, and errors in words. The function that asks is passed in. */

import type { Bytes } from '../core/bytes.ts'
import { ProviderError } from './provider.ts'

export type Fetch = (url: string, init?: RequestInit) => Promise<Response>

/** A provider that is silent for so long is not there. */
const SILENT_MS = 60_000
/** Bytes of an answer. */
const MOST_ANSWER = 512 << 20

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
    let response: Response
    try {
      response = await this.fetch(url, {
        method,
        headers: { ...this.headers, ...headers },
        ...(body === undefined ? {} : { body: body as BodyInit }),
        signal: AbortSignal.timeout(SILENT_MS),
        credentials: 'omit',
        cache: 'no-store',
        redirect: 'follow',
        referrerPolicy: 'no-referrer'
      })
    } catch (error) {
      throw new ProviderError(this.name, false, `${this.name} did not answer when asked to ${what} (${error instanceof Error ? error.message : error})`)
    }
    if (response.ok || allow.includes(response.status)) return response
    const said = await response.text().then(
      text => text.slice(0, 200).replace(/\s+/g, ' '),
      () => ''
    )
    const refused = response.status < 500 && response.status !== 408 && response.status !== 429
    throw new ProviderError(this.name, refused, `${this.name} answered ${response.status} when asked to ${what}${said === '' ? '' : `: ${said}`}`)
  }

  /** The bytes of an answer. */
  async bytes(response: Response, most = MOST_ANSWER): Promise<Bytes> {
    const length = Number(response.headers.get('Content-Length') ?? 0)
    if (length > most) throw new ProviderError(this.name, true, `${this.name} sends more than was asked for`)
    try {
      const data = new Uint8Array(await response.arrayBuffer())
      if (data.length <= most) return data
    } catch (error) {
      throw new ProviderError(this.name, false, `${this.name} broke off (${error instanceof Error ? error.message : error})`)
    }
    throw new ProviderError(this.name, true, `${this.name} sends more than was asked for`)
  }
}
