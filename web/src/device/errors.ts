/** Errors for people and programs: what happened, to what, and the next step. */

export type ErrorKind = 'usage' | 'not found' | 'changed' | 'limit' | 'member' | 'none' | 'locked' | 'provider' | 'copied' | 'storage'

export class MemoryError extends Error {
  constructor(
    readonly kind: ErrorKind,
    message: string,
    /** The next step; may be empty. */
    readonly hint = ''
  ) {
    super(message)
    this.name = 'MemoryError'
  }
}
