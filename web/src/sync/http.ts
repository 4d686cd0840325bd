/** Requests to providers: one function with a time limit and readable errors. `fetch` is passed in. */

import type { Bytes } from '../core/bytes.ts'
import { ProviderError } from './provider.ts'

export type Fetch = (url: string, init?: RequestInit) => Promise<Response>

/** Milliseconds of silence after which a provider is unavailable, and after which it must have sent this many bytes for each one more. */
const SILENT_MS = 60_000
const SLOWEST_BYTES_PER_MS = 16
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
  /** Milliseconds that the whole answer may take. */
  readonly within?: number
}

/** Aborts a request that is silent, or slower than the slowest rate. */
class TimeLimit {
  readonly #stopping = new AbortController()
  readonly #began = performance.now()
  #received = 0
  #timer: unknown

  constructor(
    readonly silentMs: number,
    readonly sent: number,
    readonly within: number
  ) {
    this.#wait(silentMs + sent / SLOWEST_BYTES_PER_MS)
  }

  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  received(bytes: number): void {
    this.#received += bytes
    const allowed = this.silentMs + this.sent / SLOWEST_BYTES_PER_MS + this.#received / SLOWEST_BYTES_PER_MS
    this.#wait(Math.min(this.silentMs, Math.min(allowed, this.within) - (performance.now() - this.#began)))
  }

  end(): void {
    clearTimeout(this.#timer as number | undefined)
  }

  #wait(ms: number): void {
    this.end()
    this.#timer = setTimeout(() => this.#stopping.abort(new DOMException('no answer in time', 'TimeoutError')), ms)
    // In Node a program may end before that.
    ;(this.#timer as { readonly unref?: () => void }).unref?.()
  }
}

/** Bytes of a body; of a form those of its files. */
const sizeOf = (body: RequestOptions['body']): number =>
  body instanceof FormData ? [...body.values()].reduce((sum, one) => sum + (typeof one === 'string' ? 0 : one.size), 0) : (body?.length ?? 0)

const limits = new WeakMap<Response, TimeLimit>()

export class Http {
  constructor(
    readonly name: string,
    readonly fetch: Fetch,
    readonly headers: Readonly<Record<string, string>> = {},
    /** Added to the error when a request gets no answer at all: browsers do not say why. */
    readonly unreached = '',
    readonly silentMs = SILENT_MS
  ) {}

  async ask(url: string, { method = 'GET', headers = {}, body, allow = [], what, within = Number.POSITIVE_INFINITY }: RequestOptions): Promise<Response> {
    const sent = { ...this.headers, ...headers }
    let response: Response
    const limit = new TimeLimit(this.silentMs, sizeOf(body), within)
    try {
      response = await this.fetch(url, {
        method,
        headers: sent,
        ...(body === undefined ? {} : { body: body as BodyInit }),
        signal: limit.signal,
        credentials: 'omit',
        cache: 'no-store',
        // A token is sent only to the address for which it was given.
        redirect: 'Authorization' in sent ? 'error' : 'follow',
        referrerPolicy: 'no-referrer'
      })
    } catch (error) {
      limit.end()
      throw new ProviderError(this.name, false, `${this.name} did not answer when asked to ${what} (${this.#withoutSecrets(error instanceof Error ? error.message : String(error))})${this.unreached}`)
    }
    limits.set(response, limit)
    if (response.ok || allow.includes(response.status)) return response
    const said = await this.beginning(response).then(
      text => this.#withoutSecrets(text).slice(0, 200).replace(/\s+/g, ' '),
      () => ''
    )
    const refused = response.status < 500 && response.status !== 408 && response.status !== 429
    throw new ProviderError(this.name, refused, `${this.name} answered ${response.status} when asked to ${what}${said === '' ? '' : `: ${said}`}`)
  }

  /** A server may send back what it was sent. */
  #withoutSecrets(text: string): string {
    return Object.values(this.headers).reduce((left, value) => left.replaceAll(value, '...').replaceAll(value.replace(/^\S+ /, ''), '...'), text)
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
    const limit = limits.get(response)
    try {
      const reader = response.body?.getReader()
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
        parts.push(next.value)
        size += next.value.length
        limit?.received(next.value.length)
        if (size <= most) continue
        isWhole = false
        void reader?.cancel().catch(() => undefined)
        break
      }
    } catch (error) {
      throw new ProviderError(this.name, false, `${this.name} broke off (${this.#withoutSecrets(error instanceof Error ? error.message : String(error))})`)
    } finally {
      limit?.end()
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
