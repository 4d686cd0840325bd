/** The context that an agent would get: the exact text, its cost, and what did not fit. */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import type { Context } from './client.ts'
import { many, View } from './view.ts'

const LAYOUTS: readonly [string, string][] = [['index', 'Index'], ['ranked', 'Ranked'], ['full', 'Whole texts'], ['turn', 'One turn']]

export class ContextView extends View {
  static override properties = { ...View.properties, made: { state: true }, query: { state: true }, tokens: { state: true }, layout: { state: true } }
  declare made: Context | null
  declare query: string
  declare tokens: number
  declare layout: string
  #waiting = 0

  constructor() {
    super()
    Object.assign(this, { made: null, query: '', tokens: 2000, layout: 'index' })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get('place')
    if (changed.has('place') && (before?.scope !== this.place.scope || before?.revision !== this.place.revision)) void this.#load()
  }

  async #load(): Promise<void> {
    const { client, scope } = this.place
    const query = this.query.trim()
    const made = await this.attempt(() => client.context(scope, { ...(query ? { query } : {}), maxTokens: this.tokens, layout: this.layout }))
    if (made !== undefined) this.made = made
  }

  #soon(): void {
    clearTimeout(this.#waiting)
    this.#waiting = window.setTimeout(() => void this.#load(), 200)
  }

  protected override render(): TemplateResult {
    const made = this.made
    const share = made === null ? 0 : Math.round((100 * made.tokens) / this.tokens)
    return html`<section class="page" aria-busy=${this.busy}><h2>What the agent sees</h2>
      <div class="tools">
        <input type="search" aria-label="A question of the agent's user" placeholder="A question, or empty for the start of a session" .value=${this.query} @input=${(event: Event) => { this.query = (event.target as HTMLInputElement).value; this.#soon() }}>
        <label class="inline">At most<input type="number" min="200" max="200000" step="100" .value=${String(this.tokens)} @change=${(event: Event) => { this.tokens = Math.max(200, Number((event.target as HTMLInputElement).value) || 2000); void this.#load() }}> tokens</label>
        <select aria-label="Layout" @change=${(event: Event) => { this.layout = (event.target as HTMLSelectElement).value; void this.#load() }}>${LAYOUTS.map(([value, words]) => html`<option value=${value} ?selected=${value === this.layout}>${words}</option>`)}</select>
      </div>${this.problem()}
      ${made === null ? nothing : html`<p class="count" role="status"><strong>${many(made.tokens, 'token')}</strong> (${share} % of the limit) · ${many(made.shown.length, 'memory', 'memories')} with text · ${made.listed} in the index${made.leftOut ? ` · ${made.leftOut} did not fit in the index` : ''}</p>
        <meter class="room" min="0" max=${this.tokens} value=${made.tokens} aria-label="Tokens that are used"></meter>
        ${made.secrets.length ? html`<div class="problem" role="alert"><strong>It seems to contain a secret.</strong> ${made.secrets.join('; ')}</div>` : nothing}
        ${made.skipped.length ? html`<p class="faint">Matched, but did not fit: ${made.skipped.join(', ')}</p>` : nothing}
        <pre class="block" dir="auto" tabindex="0" aria-label="The text that the agent is given">${made.text}</pre>`}
    </section>`
  }
}
customElements.define('context-view', ContextView)
