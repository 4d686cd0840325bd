/**
 * A saved vault in one file: it carries its own page, opens without installation or requests, and shows, searches and saves its content. It
 * is read-only.
 */

import './style.css'
import { html, LitElement, nothing, type TemplateResult } from 'lit'
import { openCopy } from '../copy.ts'
import type { Bytes } from '../core/bytes.ts'
import type { RootKeys } from '../core/wallet.ts'
import { MemoryApp } from './app.ts'
import { LocalClient } from './local_client.ts'
import { many } from './view.ts'
import './unlock.ts'

const said = (name: string): string => document.querySelector<HTMLMetaElement>(`meta[name=ipfsmem-${name}]`)?.content ?? ''

/** The CAR in this file. */
function carried(): Bytes {
  const text = atob((document.getElementById('car')?.textContent ?? '').trim())
  const car = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) car[at] = text.charCodeAt(at)
  return car
}

class RescuePage extends LitElement {
  static override properties = { other: { state: true }, damaged: { state: true } }
  /** A chosen CAR that replaces the one in this file. */
  declare other: File | null
  declare damaged: number

  constructor() {
    super()
    Object.assign(this, { other: null, damaged: 0 })
  }

  protected override createRenderRoot(): HTMLElement {
    return this
  }

  async #open(root: RootKeys): Promise<void> {
    const car = this.other === null ? carried() : new Uint8Array(await this.other.arrayBuffer())
    const { memory, damaged } = await openCopy(car, root)
    this.damaged = damaged
    const app = new MemoryApp()
    app.client = new LocalClient(memory, { name: this.other?.name ?? said('saved'), right: 'read', now: () => Date.now(), persisted: async () => null })
    document.body.append(app)
    this.classList.add('over')
    this.requestUpdate()
  }

  #chosen(event: Event): void {
    this.other = (event.target as HTMLInputElement).files?.[0] ?? null
  }

  protected override render(): TemplateResult | typeof nothing {
    if (this.classList.contains('over')) {
      return this.damaged === 0 ? nothing : html`<div class="offline" role="alert">${many(this.damaged, 'part')} of this file ${this.damaged === 1 ? 'is' : 'are'} damaged. The damaged texts are shown as not fetched, or are missing; another copy may have them.</div>`
    }
    const number = Number(said('key-number'))
    return html`<main class="door"><h1>A saved memory</h1>
      <p class="faint">Saved ${said('saved')}. It is encrypted in this file, and opened only in this page: nothing is sent, stored or changed.</p>
      <unlock-form .take=${(root: RootKeys) => this.#open(root)} .vault=${said('vault') || 'default'} .keyNumber=${number || 1}></unlock-form>
      <details class="way"><summary>Open another file with this page</summary><label>A CAR of ipfsmem export --car<input type="file" name="car" @change=${this.#chosen}></label></details></main>`
  }
}
customElements.define('rescue-page', RescuePage)
document.body.append(document.createElement('rescue-page'))
