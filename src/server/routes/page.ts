import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { packageRoot } from '../../base/package-root.ts';

const FOLDER = join(packageRoot, 'src', 'server', 'page');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The files of the chart library, which only the live tab loads. The script sets the global `uPlot`. */
const LIBRARY_FILES = { 'uplot.js': 'uplot/dist/uPlot.iife.min.js', 'uplot.css': 'uplot/dist/uPlot.min.css' } as const;

const LIBRARY = createRequire(import.meta.url);

/** Some browsers request /favicon.ico even if the page links another icon. */
const ICON_ROUTES = ['/favicon.svg', '/favicon.ico'];

/** Allows only the page's own files, and no framing by other sites. */
export const CONTENT_SECURITY_POLICY =
  "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/**
 * Serves the modules and styles of src/server/page at /page/NAME, from memory. `root`: also the page at `/`, unless another
 * interface answers there.
 */
export function registerPage(app: FastifyInstance, { root }: { readonly root: boolean }): void {
  const config = { access: 'open' } as const;
  for (const route of ICON_ROUTES) app.get(route, { config }, fileHandler(join(FOLDER, 'favicon.svg')));
  for (const name of readdirSync(FOLDER)) {
    if (/\.(?:js|css)$/.test(name)) app.get(`/page/${name}`, { config }, fileHandler(join(FOLDER, name)));
  }
  for (const [name, file] of Object.entries(LIBRARY_FILES)) {
    app.get(`/page/${name}`, { config }, fileHandler(LIBRARY.resolve(file)));
  }
  if (root) app.get('/', { config }, searchPage());
}

/** Answers with the search page, for a route at which browsers ask for it beside other clients. */
export function searchPage(): FileHandler {
  return fileHandler(join(FOLDER, 'index.html'));
}

type FileHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

interface PageFile {
  readonly content: Buffer;
  readonly etag: string;
}

/** The files that were read, by path: every listener of a server has the same. */
const FILES = new Map<string, PageFile>();

function pageFile(path: string): PageFile {
  const known = FILES.get(path);
  if (known !== undefined) return known;
  const content = readFileSync(path);
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
  FILES.set(path, { content, etag });
  return { content, etag };
}

function fileHandler(path: string): FileHandler {
  const { content, etag } = pageFile(path);
  const type = TYPES[extname(path)]!;
  return async (request, reply) => {
    reply
      .header('etag', etag)
      // Browsers revalidate each time, so that they never show an old page with an upgraded server.
      .header('cache-control', 'no-cache')
      .header('content-security-policy', CONTENT_SECURITY_POLICY)
      .header('referrer-policy', 'no-referrer');
    const known = request.headers['if-none-match'];
    if (known === '*' || known?.includes(etag)) return reply.code(304).send();
    return reply.header('content-type', type).send(content);
  };
}
