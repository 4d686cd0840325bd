/** A text of anybody as a piece of the page: Markdown, made harmless. Nothing remote is loaded, nothing runs, nothing looks like the page. */

import DOMPurify from 'dompurify'
import { marked } from 'marked'

/** Characters of a text that are rendered; the rest is told. */
const MOST = 200_000

DOMPurify.addHook('afterSanitizeAttributes', node => {
  if (node.nodeName === 'A') {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer')
  }
  if (node.nodeName === 'IMG' && !(node.getAttribute('src') ?? '').startsWith('data:image/')) {
    const words = node.ownerDocument.createElement('span')
    words.className = 'left-out'
    words.textContent = `[image not loaded: ${node.getAttribute('alt') || node.getAttribute('src') || ''}]`
    node.replaceWith(words)
  }
})

/** What nobody writes and what only costs: quotes in quotes in quotes. */
const DEEP = /^[ \t]*(?:>[ \t]*){50}/m

/** A text rendered; one that cannot be is shown as it stands. */
export function rendered(text: string): DocumentFragment {
  const some = text.length > MOST ? `${text.slice(0, MOST)}\n\n…` : text
  try {
    if (!DEEP.test(some)) return harmless(marked.parse(some, { async: false, gfm: true }))
  } catch {
    // Too deep for the parser: it is text all the same.
  }
  const plain = document.createDocumentFragment()
  plain.append(Object.assign(document.createElement('pre'), { textContent: some }))
  return plain
}

function harmless(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, {
    RETURN_DOM_FRAGMENT: true,
    USE_PROFILES: { html: true },
    FORBID_TAGS: ['style', 'form', 'input', 'button', 'textarea', 'select', 'video', 'audio', 'source', 'iframe', 'dialog', 'template'],
    FORBID_ATTR: ['style', 'id', 'class', 'name', 'srcset', 'background', 'popover']
  })
}
