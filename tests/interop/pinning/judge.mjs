/* Loaded before the judge of pinning services. It reads the schemas of the API from the mock service's copy instead of
   fetching them, and makes the contents that it asks to pin known beforehand: "7,1", "7,2", and so on. */
import { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import https from 'node:https'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'

const specification = createRequire(import.meta.url).resolve('mock-ipfs-pinning-service/api/oas-doc.yaml')
https.get = (target, ...rest) => {
  const request = new EventEmitter()
  request.setTimeout = request.end = () => request
  const answer = Readable.from([readFileSync(specification)])
  answer.statusCode = 200
  answer.headers = { 'content-type': 'text/yaml' }
  const callback = rest.find((each) => typeof each === 'function')
  setImmediate(() => { if (callback) callback(answer); request.emit('response', answer) })
  return request
}

let count = 0
const real = process.hrtime
process.hrtime = (since) => (since === undefined ? [7, ++count] : real(since))
process.hrtime.bigint = real.bigint
