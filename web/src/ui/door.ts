/** Before the memory in this browser is open: with what it is opened, where it is found, and whether it stays open. */

import { html, LitElement, nothing, type TemplateResult } from 'lit'
import type { RootKeys } from '../core/wallet.ts'
import type { OpenHow, Spec } from '../open.ts'
import { Refusal } from './client.ts'
import { asked } from './local_client.ts'
import { sentence } from './view.ts'
import './unlock.ts'

/** A place as it is typed. */
export type Typed = { readonly at: string; readonly token: string }

export class MemoryDoor extends LitElement {
  static override properties = { enter: { attribute: false }, isNew: { attribute: false }, passkeys: { attribute: false }, typed: { state: true }, stay: { state: true }, failed: { state: true } }
  /** Opens the memory. Raises what a person is to be told. */
  declare enter: (how: OpenHow) => Promise<void>
  /** Whether this browser keeps no memory yet, so that it has to be told where. */
  declare isNew: boolean
  /** Passkeys that open what is kept here. */
  declare passkeys: readonly string[]
  declare typed: readonly Typed[]
  declare stay: boolean
  declare failed: Refusal | null

  constructor() {
    super()
    Object.assign(this, { isNew: true, passkeys: [], typed: [], stay: false, failed: null })
  }

  protected override createRenderRoot(): HTMLElement {
    return this
  }

  get #places(): readonly Spec[] | null {
    return this.isNew ? this.typed.filter(one => one.at.trim() !== '').map(({ at, token }) => ({ at: at.trim(), token: token.trim() || null })) : null
  }

  async #take(root: RootKeys): Promise<void> {
    const at = this.#places
    if (at !== null && at.length === 0) throw new Refusal('usage', 'no place is named where this memory is found', 'For instance routing:https://… with gateway:https://…, or peer:https://…', 400)
    await this.enter({ at, keepAt: true, root, stay: this.stay, label: label() })
  }

  async #passkey(): Promise<void> {
    try {
      await asked(async () => {
        const { usePasskey } = await import('../wallet/passkey.ts')
        await this.enter({ at: null, passkey: await usePasskey(this.passkeys, size => crypto.getRandomValues(new Uint8Array(size))), stay: this.stay })
      })
    } catch (error) {
      this.failed = error as Refusal
    }
  }

  #type(at: number, part: Partial<Typed>): void {
    this.typed = this.typed.map((one, i) => (i === at ? { ...one, ...part } : one))
  }

  protected override render(): TemplateResult {
    return html`<main class="door"><h1>Open your memory</h1>
      <p class="faint">It is brought here encrypted, and opened in this browser. No server reads it.</p>
      ${this.failed === null ? nothing : html`<div class="problem" role="alert"><strong>${sentence(this.failed.message)}</strong> ${this.failed.hint}</div>`}
      ${this.passkeys.length ? html`<button class="main way" @click=${this.#passkey}>Open with the passkey</button>` : nothing}
      <unlock-form .take=${(root: RootKeys) => this.#take(root)} .twice=${this.isNew}></unlock-form>
      ${this.isNew ? html`<fieldset class="way"><legend>Where it is</legend>
        ${this.typed.map((one, i) => html`<div class="place"><input aria-label="Place ${i + 1}" placeholder="peer:https://…" .value=${one.at} @input=${(event: Event) => this.#type(i, { at: (event.target as HTMLInputElement).value })} autocomplete="off" spellcheck="false">
          <input type="password" aria-label="What lets this browser write there" placeholder="token, to write there" .value=${one.token} @input=${(event: Event) => this.#type(i, { token: (event.target as HTMLInputElement).value })} autocomplete="off"></div>`)}
        <button type="button" class="quiet" @click=${() => (this.typed = [...this.typed, { at: '', token: '' }])}>Add a place</button>
        <p class="faint">A token is kept in this browser alone, sealed under a key that no script reads, and never in the memory.</p></fieldset>` : nothing}
      <label class="way check"><input type="checkbox" .checked=${this.stay} @change=${(event: Event) => (this.stay = (event.target as HTMLInputElement).checked)}>
        <span>Stay open in this browser. <span class="faint">Whoever copies its profile from this disk can read the memory then.</span></span></label></main>`
  }
}
customElements.define('memory-door', MemoryDoor)

/** What people call this browser in the list of devices. */
function label(): string {
  const { userAgent } = navigator
  const name = ['Firefox', 'Edg', 'Chrome', 'Safari'].find(one => userAgent.includes(one)) ?? ''
  return `${name === 'Edg' ? 'Edge' : name || 'a'} browser`
}
