// The upload service's own server code with its in-memory stores, on loopback, for tests.
//
// Prints one line of JSON, {url, did}, when it stands. Besides the service (POST /, GET /receipt/<task>) there are
// test-only routes under /_test: they provision spaces, count what arrives, and make things fail. Storage nodes are the
// package's own; they learn byte ranges here, which real ones have.
import realHttp from 'node:http'
import { Message, parseLink } from '@ucanto/core'
import * as CAR from '@ucanto/transport/car'
import { base58btc } from 'multiformats/bases/base58'

// The context's own proofs run out 30 s after they are made.
const started = Date.now()
Date.now = () => started

const { createContext } = await import('@storacha/upload-api/test/context')

const stats = { puts: 0, put_bytes: 0, gets: 0, get_bytes: 0, rpc: 0, rpc_bytes: 0, receipts: 0, not_found: 0 }
const fault = { deny: {}, drop_put: 0, put_status: 0, put_fails: 0, ranges: true, shards_apart: false, receipts_late: 0, blob_most: 0 }

const nodeHandler = (handler) => async (request, response) => {
  if (request.method === 'PUT') {
    stats.puts += 1
    if (fault.put_fails > 0) {
      fault.put_fails -= 1
      if (fault.put_status) {
        request.resume()
        response.writeHead(fault.put_status)
        return response.end()
      }
      let seen = 0
      request.on('data', (piece) => {
        seen += piece.length
        stats.put_bytes += piece.length
        if (seen >= fault.drop_put) request.destroy()
      })
      request.on('error', () => {})
      return
    }
    request.on('data', (piece) => (stats.put_bytes += piece.length))
    request.pause()
    return handler(request, response)
  }
  if (request.method !== 'GET') return handler(request, response)
  stats.gets += 1
  // Collect what the node answers, then cut the range out.
  const pieces = []
  let status = 200
  const collector = {
    writeHead: (code) => (status = code),
    write: (piece) => pieces.push(piece),
    end: () => {},
    destroy: () => {},
  }
  await handler(request, collector)
  let body = Buffer.concat(pieces)
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
  const headers = { connection: 'close' } // as the node itself does
  if (status === 200 && range && fault.ranges) {
    const [from, to] = [Number(range[1]), Math.min(Number(range[2]), body.length - 1)]
    headers['content-range'] = `bytes ${from}-${to}/${body.length}`
    body = body.subarray(from, to + 1)
    status = 206
  }
  stats.get_bytes += body.length
  response.writeHead(status, { ...headers, 'content-length': body.length })
  response.end(body)
}

const http = {
  ...realHttp,
  createServer: (handler) => {
    const server = realHttp.createServer(nodeHandler(handler))
    const listen = server.listen.bind(server)
    server.listen = (done) => listen(0, '127.0.0.1', done)
    return server
  },
}

const context = await createContext({
  http,
  requirePaymentPlan: false,
  assert: { fail: (error) => console.error(error) },
})
const agent = context.connection.channel
const service = agent.service

// Whatever `fault.deny` names by ability answers that error, as the real service did when its writes were switched off;
// `fault.blob_most` is the most that a blob may have, where it is not 0.
const guard = (path) => {
  const names = path.split('/')
  const last = names.pop()
  const parent = names.reduce((at, name) => at?.[name], service)
  const real = parent[last]
  parent[last] = async (...rest) => {
    const denied = fault.deny[path]
    if (denied) return { error: denied }
    const size = path === 'space/blob/add' ? rest[0].capabilities[0].nb.blob.size : 0
    if (fault.blob_most && size > fault.blob_most) {
      return { error: { name: 'BlobSizeOutsideOfSupportedRange', message: `more than ${fault.blob_most} bytes` } }
    }
    return real(...rest)
  }
}
for (const path of [
  'space/blob/add', 'space/blob/remove', 'space/blob/list', 'space/index/add', 'upload/add', 'upload/remove',
  'upload/list', 'ucan/conclude',
]) guard(path)

// Newer servers list uploads without their shards and have upload/shard/list.
const list = service.upload.list
service.upload.list = async (...rest) => {
  const result = await list(...rest)
  if (!fault.shards_apart || !result.ok) return result
  return { ok: { ...result.ok, results: result.ok.results.map(({ shards, ...item }) => item) } }
}
service.upload.shard = {
  list: async (invocation) => {
    if (!fault.shards_apart) return { error: { name: 'HandlerNotFound', message: 'no upload/shard/list here' } }
    const { with: space, nb } = invocation.capabilities[0]
    const found = await context.uploadTable.get(space, nb.root)
    if (found.error) return { error: { name: 'UploadNotFound', message: 'not found' } }
    const start = Number(nb.cursor ?? 0)
    const size = Math.min(nb.size ?? 2, 2)
    const results = (found.ok.shards ?? []).slice(start, start + size)
    const more = start + size < (found.ok.shards ?? []).length
    return { ok: { size: results.length, results, ...(more ? { cursor: String(start + size) } : {}) } }
  },
}

const bodyOf = async (request) => {
  const pieces = []
  for await (const piece of request) pieces.push(piece)
  return Buffer.concat(pieces)
}

const answer = (response, status, body, type = 'application/json') => {
  response.writeHead(status, { 'content-type': type })
  response.end(body)
}

const control = async (request, response, path) => {
  const given = request.method === 'POST' ? JSON.parse((await bodyOf(request)).toString() || '{}') : {}
  if (path === 'provision') {
    await context.provisionsStorage.put({
      cause: {}, consumer: given.space, customer: 'did:mailto:example.com:tester', provider: context.id.did(),
    })
  } else if (path === 'fault') {
    Object.assign(fault, given)
  } else if (path.startsWith('claims/')) {
    // What the indexing service tells a gateway about a hash.
    const hashes = [parseLink(path.slice(7)).multihash]
    const found = await context.indexingService.queryClaims({ hashes })
    const claims = [...found.ok.claims.values()].map((claim) => ({
      type: claim.type, location: claim.location?.[0], index: claim.index?.toString(),
    }))
    return answer(response, 200, JSON.stringify(claims))
  } else if (path === 'blobs') {
    const found = await context.registry.entries(given.space, { size: 100000 })
    const blobs = found.ok.results.map(({ blob }) => ({ digest: base58btc.encode(blob.digest.bytes), size: blob.size }))
    return answer(response, 200, JSON.stringify(blobs))
  }
  answer(response, 200, JSON.stringify(stats))
}

const server = realHttp.createServer(async (request, response) => {
  try {
    const { pathname } = new URL(request.url, 'http://127.0.0.1')
    if (pathname.startsWith('/_test/')) return await control(request, response, pathname.slice(7))
    if (request.method === 'POST' && pathname === '/') {
      const body = await bodyOf(request)
      stats.rpc += 1
      stats.rpc_bytes += body.length
      const result = await agent.request({ headers: request.headers, body: new Uint8Array(body) })
      response.writeHead(result.status ?? 200, result.headers)
      return response.end(result.body)
    }
    if (request.method === 'GET' && pathname.startsWith('/receipt/')) {
      stats.receipts += 1
      const found = await context.agentStore.receipts.get(parseLink(pathname.slice(9)))
      if (found.error || fault.receipts_late-- > 0) {
        stats.not_found += 1
        return answer(response, 404, 'not found', 'text/plain')
      }
      const message = await Message.build({ receipts: [found.ok] })
      return answer(response, 200, CAR.response.encode(message).body, 'application/vnd.ipld.car')
    }
    answer(response, 404, 'not found', 'text/plain')
  } catch (error) {
    console.error(error)
    answer(response, 500, String(error), 'text/plain')
  }
})
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}`, did: context.id.did() }))
})
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
