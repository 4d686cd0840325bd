/** Conflicting texts side by side, and their resolution. Concurrent changes stay. */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import type { Choice, Clash } from './client.ts'
import { marked, others } from './differing.ts'
import type { Resolution } from './drafts.ts'
import { empty, View } from './view.ts'

export class ConflictsView extends View {
  static override properties = { ...View.properties, found: { state: true }, own: { state: true } }
  declare found: readonly Clash[] | null
  /** The text being edited, and the version on which it is based. */
  declare own: Resolution | null

  constructor() {
    super()
    Object.assign(this, { found: null, own: null })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get('place')
    if (changed.has('place') && before?.vaultName !== this.place.vaultName) {
      this.own = this.place.drafts.resolution(this.place.vaultName)
      this.found = null
    }
    if (changed.has('place') && before?.revision !== this.place.revision) void this.#load()
  }

  /** Keep the text being edited, so that it is still there on return to this view. */
  #write(own: Resolution | null): void {
    this.own = own
    this.place.drafts.keepResolution(this.place.vaultName, own)
  }

  async #load(): Promise<void> {
    const found = await this.attempt(() => this.place.client.conflicts())
    if (found !== undefined) this.found = found
  }

  async #resolve(clash: Clash, choice: Choice): Promise<void> {
    const done = await this.act(async () => { await this.place.client.resolve(clash, choice); return true })
    const failed = this.failed
    if (done && this.own?.key === placeOf(clash)) this.#write(null)
    await this.#load()
    this.failed = failed
  }

  #one(clash: Clash): TemplateResult {
    const place = placeOf(clash)
    const own = this.own?.key === place ? this.own : null
    const since = own !== null && own.seen !== clash.seen
    const sides = [
      { by: clash.by, title: clash.forgotten ? 'Forgotten' : 'Shown now', text: clash.text, choice: { keep: true } as Choice, words: clash.forgotten ? 'Keep it deleted' : 'Keep this' },
      ...clash.copies.map(copy => ({ by: copy.by, title: 'Alternative', text: copy.text, choice: { alternative: copy.file } as Choice, words: 'Take this' }))
    ]
    return html`<article class="clash"><h3 dir="auto">${clash.key}${clash.scope ? html` <span class="faint">in ${clash.scope}</span>` : nothing}</h3>
      <div class="sides">${sides.map(side => html`<section class="side"><header><strong>${side.title}</strong> <span class="faint" dir="auto">${side.by ? `by ${side.by}` : ''}</span></header>
        <pre dir="auto" tabindex="0" aria-label=${`${side.title}, ${clash.key}`}>${side.text === null ? (clash.forgotten && 'keep' in side.choice ? 'It was deleted while somebody edited it.' : 'Not fetched yet: it comes with the next sync.') : marked(side.text, others(sides.map(one => one.text).filter(text => text !== side.text)))}</pre>
        ${this.mayWrite ? html`<div class="actions"><button @click=${() => void this.#resolve(clash, side.choice)} ?disabled=${this.acting || (side.text === null && !('keep' in side.choice))}>${side.words}</button>
          ${side.text === null ? nothing : html`<button class="quiet" @click=${() => this.#write({ key: place, text: side.text!, seen: clash.seen })}>Edit this text</button>`}</div>` : nothing}
      </section>`)}</div>
      ${own !== null ? html`<form class="own" @submit=${(event: Event) => { event.preventDefault(); if (!since) void this.#resolve({ ...clash, seen: own.seen }, { text: own.text }) }}>
        ${since ? html`<div class="problem" role="alert"><strong>Another edit arrived since you began.</strong> It is shown above; nothing was replaced.
          <button type="button" @click=${() => this.#write({ ...own, seen: clash.seen })}>Continue with mine</button></div>` : nothing}
        <label>Your text, header and all<textarea .value=${own.text} @input=${(event: Event) => this.#write({ ...own, text: (event.target as HTMLTextAreaElement).value })} dir="auto"></textarea></label>
        <div class="actions end"><button type="button" class="quiet" @click=${() => this.#write(null)}>Cancel</button><button class="main" ?disabled=${this.acting || since}>Replace all with this</button></div></form>` : nothing}
    </article>`
  }

  /** Show the text being edited of a conflict that was resolved elsewhere. */
  #left(): TemplateResult | typeof nothing {
    const own = this.own
    if (own === null || this.found === null || this.found.some(one => placeOf(one) === own.key)) return nothing
    return html`<article class="clash"><div class="problem" role="alert"><strong>It was resolved elsewhere while you were writing.</strong> Nothing was replaced; your text is still here.</div>
      <textarea readonly aria-label="What you wrote" .value=${own.text} dir="auto"></textarea>
      <div class="actions end"><button class="quiet" @click=${() => this.#write(null)}>Discard it</button></div></article>`
  }

  protected override render(): TemplateResult {
    return html`<section class="page wide" aria-busy=${this.busy}><h2>Conflicts</h2>${this.problem()}${this.#left()}
      ${this.found === null ? nothing : this.found.length ? this.found.map(one => this.#one(one))
      : empty('No conflicts', 'When two devices change one memory at the same time and it cannot be merged, both texts are kept and shown here.')}</section>`
  }
}
customElements.define('conflicts-view', ConflictsView)

function placeOf(clash: Clash): string {
  return `${clash.scope}/${clash.key}`
}
