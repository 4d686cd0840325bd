/**
 * Rendered Markdown, and an event `unseen` with the number of omitted words: rendered only after a change, and a long text once typing
 * pauses, so that no key waits for it.
 */

import { LitElement, type PropertyValues } from 'lit'
import { rendered, unseen } from './markdown.ts'

/** Characters of a long text, and milliseconds of pause. */
const LONG = 4_000
const REST = 200

class ProseText extends LitElement {
  static override properties = { text: { attribute: false }, shown: { state: true } }
  declare text: string
  declare shown: string | null
  #waiting = 0
  #of: string | null = null
  #made: Node | null = null

  constructor() {
    super()
    Object.assign(this, { text: '', shown: null })
  }

  protected override createRenderRoot(): HTMLElement {
    return this
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (!changed.has('text')) return
    clearTimeout(this.#waiting)
    if (this.shown === null || this.text.length < LONG) this.shown = this.text
    else this.#waiting = window.setTimeout(() => (this.shown = this.text), REST)
  }

  protected override render(): Node | null {
    if (this.#of !== this.shown) {
      this.#of = this.shown
      this.#made = rendered(this.shown ?? '')
      const count = unseen(this.shown ?? '', this.#made)
      queueMicrotask(() => this.dispatchEvent(new CustomEvent('unseen', { detail: count })))
    }
    return this.#made
  }
}
customElements.define('prose-text', ProseText)
