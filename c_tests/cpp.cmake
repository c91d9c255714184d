# The C++ header: in rings of processes, and alone under each compiler and standard.
add_executable(cpp src/cpp/main.cc src/cpp/types.cc src/cpp/calls.cc src/cpp/futures.cc src/cpp/reductions.cc
  src/cpp/failures.cc)
set_target_properties(cpp PROPERTIES CXX_STANDARD 17)
target_link_libraries(cpp PRIVATE harness)

ring_test(cpp_types cpp 60 types 1)
foreach(subject calls futures reductions failures)
  foreach(size RANGE 1 8)
    ring_test(cpp_${subject}_n${size} cpp 120 ${subject} ${size})
  endforeach()
endforeach()
foreach(size 2 3 4 8)
  ring_test(cpp_faults_n${size} cpp 120 faults ${size})
endforeach()

# A standard is tested where the compiler knows it.
foreach(compiler g++ clang++)
  string(REPLACE + x variable ${compiler})
  foreach(standard c++17 c++20 c++23 c++2b)
    if(${variable}_PATH)
      execute_process(COMMAND "${${variable}_PATH}" -std=${standard} -x c++ -fsyntax-only /dev/null
        RESULT_VARIABLE unknown OUTPUT_QUIET ERROR_QUIET)
      if(NOT unknown)
        ring_test(cpp_header_${compiler}_${standard} ${${variable}_PATH} 60 -std=${standard} -Wall -Wextra -pedantic -Wshadow
          -Wconversion -Werror -fsyntax-only "-I${RING_ROOT}/include" "${CMAKE_CURRENT_SOURCE_DIR}/src/cpp/header.cc")
      endif()
    endif()
  endforeach()
  if(${variable}_PATH)
    ring_test(cpp_header_${compiler}_beside_macros ${${variable}_PATH} 60 -std=c++17 -DWITH_MACROS -Wall -Wextra -Werror
      -fsyntax-only "-I${RING_ROOT}/include" "${CMAKE_CURRENT_SOURCE_DIR}/src/cpp/header.cc")
    ring_test(cpp_header_${compiler}_temporary ${${variable}_PATH} 60 -std=c++17 -DWITH_TEMPORARY -fsyntax-only
      "-I${RING_ROOT}/include" "${CMAKE_CURRENT_SOURCE_DIR}/src/cpp/header.cc")
    set_tests_properties(cpp_header_${compiler}_temporary PROPERTIES PASS_REGULAR_EXPRESSION "the buffer ends before the call does")
    ring_test(cpp_header_${compiler}_without_exceptions ${${variable}_PATH} 60 -std=c++17 -fno-exceptions -Wall -Wextra -Werror
      -fsyntax-only "-I${RING_ROOT}/include" "${CMAKE_CURRENT_SOURCE_DIR}/src/cpp/header.cc")
  endif()
endforeach()
