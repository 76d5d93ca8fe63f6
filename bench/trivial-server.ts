import { createServer } from 'node:net';

/** A server that gives every request the same answer unread: how much the load generator could ask for. Writes {"url": …}. */
const BODY = '{"result":[[]]}';
const REPLY = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`);
const server = createServer((socket) => {
  socket.on('error', () => undefined);
  // The generator's requests are small and one at a time: a chunk is a request.
  socket.on('data', () => socket.write(REPLY));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`{"url":"http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}"}\n`);
});
