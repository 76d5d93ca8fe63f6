import type { TSchema } from 'typebox';
import { defined } from '../../base/objects.ts';
import { packageVersion } from '../../base/package-root.ts';
import type { Access } from '../access/access.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { VIEW_HEADER } from '../indexes/view-choice.ts';

/** Describes the API in OpenAPI 3.1, from the schemas that requests are parsed with. */
export function openApiDocument(dialects: readonly Dialect[], operations: readonly Operation[]): Json {
  const schemas: Json = { Error: ERROR_SCHEMA };
  for (const { name, method, request, reply } of dialects.filter((dialect) => isDescribed(dialect, dialects))) {
    if (method === 'POST') schemas[`${componentName(name)}Request`] = requestSchema(request);
    schemas[`${componentName(name)}Reply`] = plain(reply);
  }
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const { name, request, reply, path, method = 'get' } = operation;
    if (typeof reply !== 'string') schemas[`${componentName(name)}Reply`] = plain(reply);
    if (request !== undefined) schemas[`${componentName(name)}Request`] = requestSchema(request.schema);
    paths[path] = { [method]: otherOperation(operation) };
  }
  for (const path of new Set(dialects.map((dialect) => dialect.path))) {
    const here = dialects.filter((dialect) => dialect.path === path);
    const posted = here.filter(({ method }) => method === 'POST');
    const got = here.find(({ method }) => method === 'GET');
    paths[path.replace(/:(\w+)/g, '{$1}')] = defined({
      post: posted.length === 0 ? undefined : postOperation(posted),
      get: got && getOperation(got),
    });
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Trawl',
      version: packageVersion,
      summary: 'Exact dense retrieval for search agents',
      description: 'Several projects share POST /retrieve; the server recognises the format by the body.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    // {} because a server may require no key.
    security: [{}, { bearer: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key, if the server requires one.' },
      },
    },
  };
}

/** A route that does not belong to a dialect. */
export interface Operation {
  /** Default: get. */
  readonly method?: 'get' | 'post';
  /** In OpenAPI's notation, with parameters in braces. */
  readonly path: string;
  readonly name: string;
  readonly summary: string;
  readonly access: Access;
  readonly parameters?: readonly { readonly name: string; readonly description: string; readonly example: string }[];
  readonly request?: { readonly schema: TSchema; readonly required: boolean; readonly example: object };
  /** Schema of the JSON response, or `text`. */
  readonly reply: TSchema | 'text' | 'bytes';
  /** Whether it answers 200 even while the server starts and stops. */
  readonly always?: boolean;
  /** Descriptions of further error statuses. */
  readonly errors?: Readonly<Record<string, string>>;
}

/** Errors of all POST routes. */
const ERRORS: Readonly<Record<string, string>> = {
  413: 'The body is too large, or there are too many queries.',
  415: 'The content type is not JSON.',
  422: 'The body is not JSON, or a field is missing or has a wrong value.',
  500: 'The server or one of the queries failed.',
  503: 'The server is starting, stopping or overloaded, or the time limit has passed; retry-after has the seconds to wait.',
};

const INDEX_PARAMETER: Json = {
  name: 'index',
  in: 'query',
  required: false,
  schema: { type: 'string' },
  description:
    'Name of the index. Absent: the default index. The prefix /indexes/NAME of the path does the same. A prefix /views/NAME limits ' +
    'the request to a view.',
};

/** Headers of the responses of routes that return passages. */
const VIEW_HEADERS: Json = {
  [VIEW_HEADER]: {
    description: 'The views that limited the request, with commas in between. Absent if there are none.',
    schema: { type: 'string' },
  },
};

const KEY_ERRORS: Readonly<Record<string, string>> = { 401: 'The API key is missing or not valid for this server.' };

/** Omits dialects without fields (which the server always refuses) from a shared path: their schemas would match any body. */
function isDescribed({ path, request }: Pick<Dialect, 'path' | 'request'>, dialects: readonly Dialect[]): boolean {
  const { properties = {}, anyOf = [] } = request as { properties?: object; anyOf?: readonly object[] };
  return (
    Object.keys(properties).length + anyOf.length > 0 ||
    dialects.every((other) => other.request === request || other.path !== path)
  );
}

/** The operation of the dialects of a path, which the server tells apart by the body. */
function postOperation(dialects: readonly Dialect[]): Json {
  const [{ name: firstName, path, summary: firstSummary }] = dialects as [Dialect];
  const all = dialects.map(({ summary, ...dialect }) => ({
    ...dialect,
    summary: dialect.onlyIfNamed ? `${summary} (only with --dialect and this name)` : summary,
  }));
  const described = all.filter((dialect) => isDescribed(dialect, dialects));
  const parameters = [...path.matchAll(/:(\w+)/g)].map(([, name]) => pathParameter(name!, '', 'x'));
  const isOne = dialects.length === 1;
  const reply = anyOf(described.map(({ name }) => `${componentName(name)}Reply`));
  return {
    operationId: operationId(isOne ? firstName : path.slice(1)),
    summary: isOne ? firstSummary : 'Requests in the formats of several projects, recognised by the body',
    description: all.map(({ name, summary }) => `- ${name}: ${summary}`).join('\n'),
    parameters: [...parameters, INDEX_PARAMETER],
    requestBody: jsonBody(
      true,
      anyOf(described.map(({ name }) => `${componentName(name)}Request`)),
      Object.fromEntries(described.map(({ name, summary, example }) => [name, { summary, value: example }])),
    ),
    responses: dialectResponses(dialects, reply, { 404: 'Index or model not found.', ...ERRORS }),
  };
}

/** The operation of a dialect whose fields are parameters of the URL. */
function getOperation(dialect: Dialect): Json {
  const { name, summary, request, example } = dialect;
  const { properties, required = [] } = requestSchema(request) as {
    properties: Record<string, Json>;
    required?: readonly string[];
  };
  const parameters = Object.entries(properties).map(([field, { description, ...schema }]) => ({
    name: field,
    in: 'query',
    required: required.includes(field),
    schema,
    description,
    example: example[field],
  }));
  const { 415: _type, ...errors } = ERRORS;
  const described = { 404: 'Index not found.', ...errors, 413: 'The query is too long.' };
  const responses = dialectResponses([dialect], ref(`${componentName(name)}Reply`), described);
  return { operationId: operationId(name), summary, parameters: [...parameters, INDEX_PARAMETER], responses };
}

/** The responses of dialects: the reply, and the errors with their descriptions. */
function dialectResponses(dialects: readonly Dialect[], reply: Json, errors: Readonly<Record<string, string>>): Json {
  const others = dialects.flatMap(({ statuses }) => Object.values(statuses));
  const type = dialects[0]?.replyType ?? 'application/json';
  const ownErrors = dialects.flatMap(({ errorReply }) => errorReply ?? []);
  return {
    200: { description: 'The response.', content: { [type]: { schema: reply } }, headers: VIEW_HEADERS },
    ...errorResponses(
      {
        ...KEY_ERRORS,
        ...errors,
        501: 'The index or the server does not support it.',
        ...Object.fromEntries(
          others.map((status) => [status, status === 501 ? 'Not supported.' : 'The request is not valid.']),
        ),
      },
      ownErrors.length === 0 ? ref('Error') : { anyOf: [ref('Error'), ...ownErrors] },
    ),
  };
}

/** The operation of a route that does not belong to a dialect. */
function otherOperation(operation: Operation): Json {
  const { name, summary, access, parameters = [], request, reply, always = false, errors = {} } = operation;
  const refusals: Readonly<Record<string, string>> = {
    ...(access !== 'open' && KEY_ERRORS),
    ...(access === 'admin' && { 403: 'An admin key is required.' }),
    ...(parameters.length > 0 && { 404: 'Not found.' }),
    ...(request !== undefined && { 413: ERRORS[413]!, 415: ERRORS[415]!, 422: ERRORS[422]! }),
    ...errors,
    ...(!always && { 503: ERRORS[503]! }),
  };
  return {
    operationId: operationId(name),
    summary,
    security: access === 'open' ? [] : undefined,
    parameters:
      parameters.length === 0
        ? undefined
        : parameters.map((each) => pathParameter(each.name, each.description, each.example)),
    requestBody:
      request &&
      jsonBody(request.required, ref(`${componentName(name)}Request`), { [name]: { value: request.example } }),
    responses: {
      200: replyContent(name, reply),
      ...errorResponses(refusals, access === 'open' ? { type: 'object' } : ref('Error')),
    },
  };
}

function errorResponses(descriptions: Readonly<Record<string, string>>, schema: Json = ref('Error')): Json {
  return Object.fromEntries(
    Object.entries(descriptions).map(([status, description]) => [status, jsonContent(description, schema)]),
  );
}

function jsonBody(required: boolean, schema: Json, examples: Json): Json {
  return { required, content: { 'application/json': { schema, examples } } };
}

function replyContent(name: string, reply: Operation['reply']): Json {
  const description = 'The response.';
  if (reply !== 'text' && reply !== 'bytes') return jsonContent(description, ref(`${componentName(name)}Reply`));
  const type = reply === 'bytes' ? 'application/octet-stream' : 'text/plain';
  return { description, content: { [type]: { schema: { type: 'string' } } } };
}

function pathParameter(name: string, description: string, example: string): Json {
  return { name, in: 'path', required: true, schema: { type: 'string' }, description, example };
}

function jsonContent(description: string, schema: Json): Json {
  return { description, content: { 'application/json': { schema } } };
}

function operationId(name: string): string {
  const joined = componentName(name.replaceAll(/\W+/g, '-'));
  return joined.charAt(0).toLowerCase() + joined.slice(1);
}

type Json = Record<string, unknown>;

/** The body of every error. */
const ERROR_SCHEMA: Json = {
  type: 'object',
  properties: {
    detail: { description: 'As in FastAPI: a list of faults, or a phrase.' },
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', description: 'A stable code, listed in docs/errors.md.' },
        message: { type: 'string' },
      },
      required: ['code', 'message'],
    },
  },
  required: ['error'],
};

function anyOf(names: readonly string[]): Json {
  return names.length === 1 ? ref(names[0]!) : { anyOf: names.map(ref) };
}

function ref(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

/** `rllm-legacy` → `RllmLegacy`. */
function componentName(name: string): string {
  return name.replaceAll(/(?:^|-)(\w)/g, (_match, letter: string) => letter.toUpperCase());
}

/** Makes fields with a default optional. The schemas describe the parsed request, in which they are always present. */
function requestSchema(schema: TSchema): Json {
  return withOptionalDefaults(plain(schema)) as Json;
}

function withOptionalDefaults(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withOptionalDefaults);
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, withOptionalDefaults(value)]));
  const properties = copy.properties as Record<string, Json> | undefined;
  if (properties === undefined || !Array.isArray(copy.required)) return copy;
  const required = (copy.required as string[]).filter((name) => !('default' in (properties[name] ?? {})));
  if (required.length === 0) delete copy.required;
  else copy.required = required;
  return copy;
}

/** A plain copy, without the properties that typebox adds. */
function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema)) as Json;
}
