/** What the views of the life of a memory share: their part of the client, and what is said where there is none. */

import { html, type TemplateResult } from 'lit'
import type { Life } from './life.ts'
import { empty, View } from './view.ts'

export abstract class LifeView<Part extends keyof Life> extends View {
  /** Which part of the client it asks. */
  protected abstract readonly of: Part

  protected get lacking(): boolean {
    return this.place.client.life?.[this.of] === undefined
  }

  protected get life(): NonNullable<Life[Part]> {
    return this.place.client.life![this.of]!
  }

  protected absent(title: string): TemplateResult {
    return html`<section class="page"><h2>${title}</h2>${empty('Not in this browser', 'The memory of this page is in the browser itself, which does not have this view yet. The page that ipfsmem ui opens on your machine has it.')}</section>`
  }
}
