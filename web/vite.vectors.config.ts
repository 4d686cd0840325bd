/** The judges of the vectors as one module that Node and browsers run. */

import { defineConfig } from 'vite'

export default defineConfig({
  build: {
    outDir: 'build/vectors',
    target: 'es2022',
    minify: false,
    lib: {
      entry: { node: 'tests/node.ts', readings: 'tests/readings.ts', browser: 'tests/browser.ts', device: 'tests/device.ts', bench: 'tests/bench.ts', parsers: 'tests/parsers.ts', page: 'tests/page.ts', page_worker: 'src/worker/worker.ts' },
      formats: ['es']
    },
    rollupOptions: { external: [/^node:/] }
  }
})
