/**
 * The ways to unlock a vault: a wallet in this browser, the recovery phrase, a wallet's key file. The input goes to `take`, and is not
 * stored.
 */

import { html, LitElement, nothing, type TemplateResult } from 'lit'
import type { RootKeys } from '../core/wallet.ts'
import type { FoundWallet } from '../wallet/ethereum.ts'
import { Refusal } from './client.ts'
import { fromVault } from './local_vault.ts'
import { sentence } from './view.ts'

export class UnlockForm extends LitElement {
  static override properties = { take: { attribute: false }, vault: { attribute: false }, keyNumber: { attribute: false }, twice: { attribute: false }, wallets: { state: true }, busy: { state: true }, failed: { state: true } }
  /** Opens with these keys. Raises errors for the person. */
  declare take: (root: RootKeys) => Promise<void>
  /** Label of the wallet's vault. */
  declare vault: string
  declare keyNumber: number
  /** Whether the wallet signs twice, as required to create a vault or add a member. */
  declare twice: boolean
  declare wallets: readonly FoundWallet[]
  declare busy: string
  declare failed: Refusal | null

  constructor() {
    super()
    Object.assign(this, { vault: 'default', keyNumber: 1, twice: false, wallets: [], busy: '', failed: null })
  }

  protected override createRenderRoot(): HTMLElement {
    return this
  }

  protected override firstUpdated(): void {
    void import('./roots.ts').then(async ({ findWallets, warmUp }) => {
      this.wallets = await findWallets(window)
      setTimeout(warmUp)
    })
  }

  async #open(doing: string, keys: () => Promise<RootKeys>): Promise<void> {
    this.busy = doing
    this.failed = null
    try {
      await fromVault(async () => this.take(await keys()))
      for (const field of this.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('textarea, input[type=password], input[type=file]')) field.value = ''
    } catch (error) {
      this.failed = error as Refusal
    } finally {
      this.busy = ''
    }
  }

  get #how(): { vault: string; keyNumber: number; passphrase: string | null } {
    return { vault: this.vault, keyNumber: this.keyNumber, passphrase: this.#field('passphrase') || null }
  }

  #field(name: string): string {
    return this.querySelector<HTMLInputElement | HTMLTextAreaElement>(`[name=${name}]`)?.value ?? ''
  }

  #wallet(found: FoundWallet): void {
    void this.#open(`Asking ${found.name}…`, async () => (await import('./roots.ts')).keysOfWallet(found.provider, { ...this.#how, twice: this.twice }))
  }

  #words(event: Event): void {
    event.preventDefault()
    const words = this.#field('words')
    void this.#open('Opening…', async () => (await import('./roots.ts')).keysOfWords(words))
  }

  #file(event: Event): void {
    event.preventDefault()
    const file = this.querySelector<HTMLInputElement>('[name=keyfile]')?.files?.[0]
    const typed = this.#field('filepass')
    if (file === undefined) return
    void this.#open('Opening the key file…', async () => (await import('./roots.ts')).keysOfKeyFile(await file.text(), typed, this.#how))
  }

  protected override render(): TemplateResult {
    const off = this.busy !== ''
    return html`${this.failed === null ? nothing : html`<div class="problem" role="alert"><strong>${sentence(this.failed.message)}</strong> ${this.failed.hint}</div>`}
      <p class="faint" role="status">${this.busy}</p>
      ${this.wallets.map(one => html`<button class="main way" ?disabled=${off} @click=${() => this.#wallet(one)}>${one.icon === null ? nothing : html`<img src=${one.icon} alt="" width="18" height="18">`} Open with ${one.name}</button>`)}
      <form class="way" @submit=${this.#words}><label>Recovery phrase<textarea name="words" rows="3" autocomplete="off" autocapitalize="none" spellcheck="false" placeholder="24 words" required></textarea></label>
        <div class="actions end"><button class=${this.wallets.length ? '' : 'main'} ?disabled=${off}>Open with the recovery phrase</button></div></form>
      <details class="way"><summary>With a wallet’s key file</summary><form @submit=${this.#file}>
        <label>Key file<input type="file" name="keyfile" required></label>
        <label>Its passphrase<input type="password" name="filepass" autocomplete="off" required></label>
        <div class="actions end"><button ?disabled=${off}>Open with the key file</button></div></form></details>
      <details class="way"><summary>Another vault of the wallet, or one with a passphrase</summary><div class="fields">
        <label>Vault<input .value=${this.vault} @input=${(event: Event) => (this.vault = (event.target as HTMLInputElement).value)} autocomplete="off" spellcheck="false"></label>
        <label>Key number<input type="number" min="1" max="2147483647" .value=${String(this.keyNumber)} @input=${(event: Event) => (this.keyNumber = Number((event.target as HTMLInputElement).value))}></label>
        <label>Passphrase of the vault<input type="password" name="passphrase" autocomplete="off"></label></div></details>`
  }
}
customElements.define('unlock-form', UnlockForm)
