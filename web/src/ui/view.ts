/**
 * The base of all views of the page: they render into the page itself (one style sheet, one order of headings), get a client, and show
 * errors in one way.
 */

import { html, LitElement, nothing, type TemplateResult } from 'lit'
import { type MemoryClient, Refusal, type Right } from './client.ts'
import type { Drafts } from './drafts.ts'
import type { Life } from './life.ts'

/** The subject of a view. */
export type Place = { readonly client: MemoryClient; readonly drafts: Drafts; readonly vaultName: string; readonly scope: string; readonly right: Right; readonly revision: number; readonly whole: boolean }

export abstract class View extends LitElement {
  static override properties = { place: { attribute: false }, failed: { state: true }, busy: { state: true }, acting: { state: true } }
  declare place: Place
  declare failed: Refusal | null
  declare busy: boolean
  /** Whether an action of the person is running. A background reload disables no button: a click at that moment would be lost. */
  declare acting: boolean

  constructor() {
    super()
    this.failed = null
    this.busy = false
    this.acting = false
  }

  protected override createRenderRoot(): HTMLElement {
    return this
  }

  /** Whether the shown error is that of an action of the person. */
  #failedByUser = false

  /**
   * Load something that may fail; the error is shown, and nothing else changes. An error of an action stays until the next action: a
   * background load does not remove it.
   */
  protected async attempt<T>(work: () => Promise<T>, byUser = false): Promise<T | undefined> {
    this.busy = true
    try {
      const made = await work()
      if (byUser || !this.#failedByUser) this.failed = null
      return made
    } catch (error) {
      const failed = error instanceof Refusal ? error : new Refusal('Unexpected', String(error), '', 500)
      const shut = failed.status === 401 || failed.status === 423
      if (shut || byUser || !this.#failedByUser || this.failed === null) {
        this.failed = shut ? null : failed
        this.#failedByUser = byUser && !shut
      }
      if (shut) this.dispatchEvent(new CustomEvent('shut', { detail: failed, bubbles: true }))
      return undefined
    } finally {
      this.busy = false
    }
  }

  /** Run one action of the person at a time. */
  protected async act<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (this.acting) return undefined
    this.acting = true
    try {
      return await this.attempt(work, true)
    } finally {
      this.acting = false
    }
  }

  protected problem(): TemplateResult | typeof nothing {
    if (this.failed === null) return nothing
    return html`<div class="problem" role="alert"><strong>${sentence(this.failed.message)}</strong> ${this.failed.hint}
      <button class="quiet" @click=${() => (this.failed = null)} aria-label="Dismiss this message">Dismiss</button></div>`
  }

  protected get life(): Life {
    return this.place.client.life
  }

  protected get mayWrite(): boolean {
    return this.place.right !== 'read'
  }
}

export function sentence(text: string): string {
  // The name of the program is not capitalised.
  const first = text.startsWith('ipfsmem') ? text : text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(first) ? first : `${first}.`
}

export function moment(at: number | string | null): string {
  if (at === null || at === '') return 'not known'
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  return date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
}

export function many(number: number, one: string, more = `${one}s`): string {
  return `${number.toLocaleString()} ${number === 1 ? one : more}`
}

/** Offer a file for download. */
export function saved(blob: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

export function empty(title: string, words: string): TemplateResult {
  return html`<div class="empty"><h3>${title}</h3><p>${words}</p></div>`
}
