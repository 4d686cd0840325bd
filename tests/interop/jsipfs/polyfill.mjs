/* What js-ipfs's dependencies expect of newer Nodes. */
Promise.withResolvers ??= function () {
  let resolve, reject
  const promise = new this((yes, no) => { resolve = yes; reject = no })
  return { promise, resolve, reject }
}
