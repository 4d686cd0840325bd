/** Errors for people and programs: what happened, to what, and what to do next. */

export type ErrorKind = 'usage' | 'not found' | 'changed' | 'limit' | 'member' | 'none' | 'locked' | 'provider' | 'copied' | 'storage'

export class MemoryError extends Error {
  constructor(
    readonly kind: ErrorKind,
    message: string,
    /** What to do next; empty where there is nothing to say. */
    readonly hint = ''
  ) {
    super(message)
    this.name = 'MemoryError'
  }
}
