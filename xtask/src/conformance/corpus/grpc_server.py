"""A gRPC server for the `.proto` files below a folder: `grpc_server.py FOLDER`.

It prints its address and then responds to every method with a message that is the same for the same request. Fields that the
request has too, by name and kind, have its values. A method that nothing describes is UNIMPLEMENTED.
"""

import sys
from concurrent import futures
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from grpc_reflection.v1alpha import reflection
from grpc_tools import protoc

# Messages within messages that are filled.
DEEPEST = 3

TEXTS = {FieldDescriptor.CPPTYPE_STRING}
NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}
FRACTIONS = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}


def descriptor_sets(folder):
    """Each file with its imports, which may be relative to any folder above it."""
    for path in sorted(folder.rglob("*.proto")):
        above = [path.parent, *(it for it in path.parents if it.is_relative_to(folder))]
        includes = sorted({str(it) for it in above}, key=len, reverse=True)
        target = folder.with_suffix(".binpb")
        arguments = ["protoc", "--include_imports", f"--descriptor_set_out={target}"]
        arguments += [f"--proto_path={it}" for it in includes]
        arguments += [f"--proto_path={Path(protoc.__file__).parent / '_proto'}", str(path)]
        # What is not complete is missing for both programs.
        if protoc.main(arguments) == 0:
            yield descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes())
            target.unlink()


def methods_of(pool, described):
    for file in described.file:
        for service in pool.FindFileByName(file.name).services_by_name.values():
            for method in service.methods:
                yield f"/{service.full_name}/{method.name}", method


def value_of(field, deep):
    if field.cpp_type in TEXTS:
        return field.name if field.type == FieldDescriptor.TYPE_STRING else field.name.encode()
    if field.cpp_type in NUMBERS:
        return 7
    if field.cpp_type in FRACTIONS:
        return 1.5
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return True
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return field.enum_type.values[-1].number
    return filled(field.message_type, None, deep + 1)


def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def filled(descriptor, request, deep=0):
    message = message_factory.GetMessageClass(descriptor)()
    for field in descriptor.fields:
        is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
        first = field.containing_oneof is None or field.containing_oneof.fields[0] is field
        if is_map(field) or not first or (is_message and deep == DEEPEST):
            continue
        given = request and request.DESCRIPTOR.fields_by_name.get(field.name)
        if given and not is_message and (given.type, given.is_repeated) == (field.type, field.is_repeated):
            value = getattr(request, field.name)
        else:
            value = value_of(field, deep)
            value = [value] if field.is_repeated else value
        if field.is_repeated:
            getattr(message, field.name).extend(value)
        elif is_message:
            getattr(message, field.name).CopyFrom(value)
        else:
            setattr(message, field.name, value)
    return message


def handler_of(method):
    """For messages as bytes."""
    request_class = message_factory.GetMessageClass(method.input_type)

    def respond(data, context):
        context.send_initial_metadata((("x-served-by", "stand-in"),))
        context.set_trailing_metadata((("x-done", "yes"),))
        response = filled(method.output_type, request_class.FromString(data))
        return response.SerializePartialToString()

    def one(data, context):
        return respond(data, context)

    def many(data, context):
        response = respond(data, context)
        for _ in range(3):
            yield response

    def last(requests, context):
        data = b""
        for data in requests:
            pass
        return respond(data, context)

    def each(requests, context):
        for data in requests:
            response = filled(method.output_type, request_class.FromString(data))
            yield response.SerializePartialToString()

    if method.client_streaming:
        if method.server_streaming:
            return grpc.stream_stream_rpc_method_handler(each)
        return grpc.stream_unary_rpc_method_handler(last)
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(many)
    return grpc.unary_unary_rpc_method_handler(one)


class Methods(grpc.GenericRpcHandler):
    def __init__(self, handlers):
        self.handlers = handlers

    def service(self, details):
        return self.handlers.get(details.method)


def main(folder):
    handlers = {
        # `SERVING`
        "/grpc.health.v1.Health/Check": grpc.unary_unary_rpc_method_handler(lambda *_: b"\x08\x01"),
    }
    # Reflection has one pool: of files that describe the same it has the first.
    reflected = descriptor_pool.DescriptorPool()
    names = set()
    for described in descriptor_sets(folder):
        pool = descriptor_pool.DescriptorPool()
        for file in described.file:
            pool.Add(file)
        for path, method in methods_of(pool, described):
            handlers.setdefault(path, handler_of(method))
        try:
            for file in described.file:
                reflected.Add(file)
            services = {method.containing_service.full_name for _, method in methods_of(reflected, described)}
        except (TypeError, KeyError):
            continue
        names |= services
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((Methods(handlers),))
    reflection.enable_server_reflection(sorted(names), server, pool=reflected)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
